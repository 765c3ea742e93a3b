import { type AstNode, literalText } from './ast.ts'

/** The type that an untyped value is read as. */
export type ExpectedType = 'number' | 'text'

/** One string literal, or a list of them. */
const TEXTS = /^('(?:[^'\\]|\\.)*'|(?:Tuple|Array)_[([](?:'(?:[^'\\]|\\.)*'(?:, |(?=[)\]])))+[)\]])$/

/** Also used for the types of placeholders. */
export const NUMERIC_TYPE = /^ *(Nullable\( *)?(U?Int\d+|Float\d+|BFloat16|Decimal\d*(\([\d, ]*\))?)[ )]*$/

/** Matches literals as the tree prints them: `UInt64_5`. */
const NUMBER = /^(U?Int\d+|Float\d+|Decimal\d*)_/

const ARITHMETIC = words(
  'plus minus multiply divide modulo intdiv intdivorzero moduloorzero positivemodulo positive_modulo pmod mod negate',
)
const COMPARISONS = words('equals notequals less greater lessorequals greaterorequals')
const IN = /^(global)?(not)?(null)?in$/
const MATH = words(
  'abs round roundbankers floor ceil ceiling trunc truncate sqrt cbrt exp exp2 exp10 log ln log2 log10 log1p pow power sign',
)
const NUMERIC_RESULT =
  /^(count.*|uniq.*|length|lengthutf8|char_length|to(u?int|float|decimal|bfloat)\d+(or(null|zero|default))?|tounixtimestamp.*|datediff|date_diff|age|row_number|rank|dense_rank)$/
const CASTS = /^(_?cast|accuratecast(ornull|ordefault)?|dynamicelement)$/

/** Aggregates of numbers. `min` and `max` take any type; their untyped arguments are read as numbers. */
const AGGREGATES =
  /^(sum|sumkahan|sumwithoverflow|sumcount|avg|avgweighted|min|max|argmin|argmax|min_by|max_by|medians?\w*|quantiles?\w*|stddev\w*|std|var(pop|samp)\w*|var_(pop|samp)|covar\w*|corr\w*|skew(pop|samp)|kurt(pop|samp)|deltasum|rankcorr|simplelinearregression)$/
/** Only the first argument is a value; the second one is an integer weight. */
const FIRST_IS_NUMBER = /^(quantile|median)/
/** The first argument may have any type. */
const SECOND_IS_NUMBER = words('argmin argmax min_by max_by')

/** Combinators that do not change the type of the values. */
const COMBINATOR = /(If|OrNull|OrDefault|Distinct)$/

/**
 * Finds where a query expects numbers: operands of arithmetic, arguments of functions and aggregates that take only
 * numbers, and values compared with a number. Untyped values there are read as numbers; untyped values compared with a
 * string literal are read as text.
 */
export class TypedContexts {
  private readonly byAlias: ReadonlyMap<string, readonly AstNode[]>
  /** Whether aliases are numbers; false while that is looked at, because `a` may refer to itself. */
  private readonly numericAliases = new Map<string, boolean>()

  /**
   * @param isUntyped whether a node is a value of unknown type
   * @param columns the numeric columns
   */
  constructor(
    private readonly nodes: readonly AstNode[],
    private readonly isUntyped: (node: AstNode) => boolean,
    private readonly columns: ReadonlySet<string>,
  ) {
    this.byAlias = Map.groupBy(
      nodes.filter(({ alias }) => alias !== ''),
      ({ alias }) => alias,
    )
  }

  /** The untyped values in a context that expects a type, with that type. */
  found(): Map<AstNode, ExpectedType> {
    const calls = this.nodes.filter(({ kind, parent }) => kind === 'Function' && parent?.kind !== 'TableExpression')
    const texts = calls.flatMap(comparedWithText).flatMap((node) => this.untypedIn(node))
    const numbers = calls.flatMap((call) => this.wantedBy(call)).flatMap((node) => this.untypedIn(node))
    return new Map([
      ...texts.map((node) => [node, 'text'] as const),
      ...numbers.map((node) => [node, 'number'] as const),
    ])
  }

  /** The arguments of a call that must be numbers. */
  private wantedBy(call: AstNode): readonly AstNode[] {
    const args = argsOf(call)
    const name = call.name.toLowerCase()
    if (ARITHMETIC.has(name)) return args.some(isInterval) ? [] : args
    if (COMPARISONS.has(name)) return args.filter((_, i) => this.isNumber(args[1 - i]))
    if (IN.test(name)) return this.isSetOfNumbers(args[1]) ? args.slice(0, 1) : []
    if (MATH.has(name)) return args
    const aggregate = aggregateOf(call.name)
    if (aggregate === undefined) return []
    const values = aggregate.hasCondition ? args.slice(0, -1) : args
    if (SECOND_IS_NUMBER.has(aggregate.name)) return values.slice(1, 2)
    return FIRST_IS_NUMBER.test(aggregate.name) ? values.slice(0, 1) : values
  }

  /** Looks through conditions and defaults: `sum(if(ok, payload.a, 0))`. */
  private untypedIn(node: AstNode): AstNode[] {
    if (this.isUntyped(node)) return node.alias === '' ? [node] : []
    return passedThrough(node).flatMap((each) => this.untypedIn(each))
  }

  private isNumber(node: AstNode | undefined): boolean {
    switch (node?.kind) {
      case 'Literal':
        return NUMBER.test(node.rest)
      case 'Function':
        return this.isNumericCall(node)
      case 'Identifier':
        return this.isNumericName(node.name)
      case 'Subquery':
        return this.isNumber(onlyColumnOf(node))
      default:
        return false
    }
  }

  private isNumericCall(call: AstNode): boolean {
    const args = argsOf(call)
    const name = call.name.toLowerCase()
    // Arithmetic on dates returns dates, so every operand must be a number.
    if (ARITHMETIC.has(name)) return args.every((each) => this.isNumber(each) || this.isUntyped(each))
    if (MATH.has(name) || NUMERIC_RESULT.test(name)) return true
    if (CASTS.test(name)) return NUMERIC_TYPE.test(literalText(args[1]) ?? '')
    const aggregate = aggregateOf(call.name)
    if (aggregate?.name === 'min' || aggregate?.name === 'max')
      return args[0] !== undefined && (this.isNumber(args[0]) || this.isUntyped(args[0]))
    if (aggregate !== undefined && !SECOND_IS_NUMBER.has(aggregate.name)) return true
    return passedThrough(call).some((each) => this.isNumber(each))
  }

  private isNumericName(name: string): boolean {
    const aliased = this.byAlias.get(name)
    if (aliased === undefined) return this.columns.has(name.split('.').at(-1) ?? '')
    const known = this.numericAliases.get(name)
    if (known !== undefined) return known
    this.numericAliases.set(name, false)
    const isNumber = aliased.every((node) => this.isNumber(node))
    this.numericAliases.set(name, isNumber)
    return isNumber
  }

  private isSetOfNumbers(node: AstNode | undefined): boolean {
    if (node?.kind === 'Function' && /^(tuple|array)$/.test(node.name))
      return argsOf(node).every((each) => this.isNumber(each))
    const list = node?.kind === 'Literal' ? /^(?:Tuple|Array)_[([](.*)[)\]]$/.exec(node.rest)?.[1] : undefined
    return list === undefined ? this.isNumber(node) : list.split(', ').every((each) => NUMBER.test(each))
  }
}

function comparedWithText(call: AstNode): readonly AstNode[] {
  const args = argsOf(call)
  const name = call.name.toLowerCase()
  const isText = (node: AstNode | undefined) => node?.kind === 'Literal' && TEXTS.test(node.rest)
  if (COMPARISONS.has(name)) return args.filter((_, i) => isText(args[1 - i]))
  return IN.test(name) && isText(args[1]) ? args.slice(0, 1) : []
}

function aggregateOf(called: string): { readonly name: string; readonly hasCondition: boolean } | undefined {
  let name = called
  let hasCondition = false
  for (let combinator = COMBINATOR.exec(name); combinator !== null; combinator = COMBINATOR.exec(name)) {
    hasCondition ||= combinator[1] === 'If'
    name = name.slice(0, combinator.index)
  }
  return AGGREGATES.test(name.toLowerCase()) ? { name: name.toLowerCase(), hasCondition } : undefined
}

/** The arguments of a call that may be its result. */
function passedThrough(node: AstNode): readonly AstNode[] {
  const args = node.kind === 'Function' ? argsOf(node) : []
  switch (node.name.toLowerCase()) {
    case 'if':
      return args.slice(1)
    case 'multiif':
      return args.filter((_, i) => i % 2 === 1 || i === args.length - 1)
    case 'coalesce':
    case 'ifnull':
      return args
    case 'nullif':
    case 'assumenotnull':
    case 'tonullable':
      return args.slice(0, 1)
    default:
      return []
  }
}

function isInterval(node: AstNode): boolean {
  return node.kind === 'Function' && /^toInterval/i.test(node.name)
}

/** The column of a subquery with exactly one. */
function onlyColumnOf(subquery: AstNode): AstNode | undefined {
  const select = subquery.children[0]?.children[0]?.children[0]
  const [list] = select?.kind === 'SelectQuery' ? select.children : []
  return list?.kind === 'ExpressionList' && list.children.length === 1 ? list.children[0] : undefined
}

function argsOf(call: AstNode): readonly AstNode[] {
  const [list] = call.children
  return list?.kind === 'ExpressionList' ? list.children : []
}

function words(text: string): ReadonlySet<string> {
  return new Set(text.split(/\s+/))
}
