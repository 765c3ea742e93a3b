/**
 * The ClickHouse functions that tenant SQL may call: those that compute their result from their arguments alone. Any other
 * function is refused, including new functions of a newer engine. Excluded on purpose, besides functions that read files,
 * settings, dictionaries or other tables: functions that take a function, a query or a format by name (arrayReduce,
 * formatRow), aggregate states (they are parsed from bytes), functions that describe the server, and string distances
 * (editDistance), because a single row can take seconds during which no limit can stop it.
 */

/** Case-sensitive names. */
const FUNCTIONS = words(`
  accurateCast accurateCastOrDefault accurateCastOrNull acosh addDays addHours addInterval addMicroseconds
  addMilliseconds addMinutes addMonths addNanoseconds addQuarters addSeconds addTupleOfIntervals addWeeks addYears
  alphaTokens and appendTrailingCharIfAbsent array arrayAll arrayAUC arrayAUCPR arrayAutocorrelation arrayAvg
  arrayBottomK arrayCompact arrayConcat arrayCount arrayCumSum arrayCumSumNonNegative arrayDifference arrayDistinct
  arrayDotProduct arrayElement arrayElementOrNull arrayEnumerate arrayEnumerateDense arrayEnumerateDenseRanked
  arrayEnumerateUniq arrayEnumerateUniqRanked arrayExcept arrayExists arrayFill arrayFilter arrayFirst arrayFirstIndex
  arrayFirstOrNull arrayFlatten arrayFold arrayIntersect arrayJaccardIndex arrayJoin arrayLast arrayLastIndex
  arrayLastOrNull arrayMap arrayMax arrayMin arrayNormalizedGini arrayPartialReverseSort arrayPartialSort arrayPopBack
  arrayPopFront arrayPRAUC arrayProduct arrayPushBack arrayPushFront arrayRemove arrayResize arrayReverse
  arrayReverseFill arrayReverseSort arrayReverseSplit arrayROCAUC arrayRotateLeft arrayRotateRight arrayShiftLeft
  arrayShiftRight arrayShingles arraySlice arraySort arraySplit arrayStringConcat arraySum arraySymmetricDifference
  arrayTopK arrayTranspose arrayUnion arrayUniq arrayWithConstant arrayZip arrayZipUnaligned asinh assumeNotNull atanh
  bar base32Decode base32Encode base58Decode base58Encode base64Decode base64Encode base64URLDecode base64URLEncode
  basename bitAnd bitCount bitHammingDistance bitmaskToArray bitmaskToList bitNot bitOr bitPositionsToArray
  bitRotateLeft bitRotateRight bitShiftLeft bitShiftRight bitSlice bitTest bitTestAll bitTestAny bitXor
  byteHammingDistance byteSize caseFoldUTF8 caseWithExpr caseWithExpression caseWithoutExpr caseWithoutExpression cbrt
  changeDay changeHour changeMinute changeMonth changeSecond changeYear cityHash64 clamp compareSubstrings
  concatAssumeInjective concatWithSeparator concatWithSeparatorAssumeInjective conv convertCharset cosh cosineDistance
  cosineDistanceTransposed cosineDistanceTransposedQuantized countDigits countEqual countMatches
  countMatchesCaseInsensitive countSubstringsCaseInsensitive countSubstringsCaseInsensitiveUTF8 cutFragment cutIPv6
  cutQueryString cutQueryStringAndFragment cutToFirstSignificantSubdomain cutToFirstSignificantSubdomainCustom
  cutToFirstSignificantSubdomainCustomRFC cutToFirstSignificantSubdomainCustomWithWWW
  cutToFirstSignificantSubdomainCustomWithWWWRFC cutToFirstSignificantSubdomainRFC
  cutToFirstSignificantSubdomainWithWWW cutToFirstSignificantSubdomainWithWWWRFC cutURLParameter cutWWW DATE_DIFF
  date_diff dateTime64ToSnowflakeID dateTimeToSnowflakeID dateTimeToUUIDv7 dateTrunc decodeHTMLComponent
  decodeURLComponent decodeURLFormComponent decodeXMLComponent defaultValueOfArgumentType digits divide divideDecimal
  divideOrNull domain domainRFC domainWithoutWWW domainWithoutWWWRFC dotProduct dotProductTransposed
  dotProductTransposedQuantized dynamicElement dynamicType e empty emptyArrayDate emptyArrayDateTime emptyArrayFloat32
  emptyArrayFloat64 emptyArrayInt16 emptyArrayInt32 emptyArrayInt64 emptyArrayInt8 emptyArrayString emptyArrayUInt16
  emptyArrayUInt32 emptyArrayUInt64 emptyArrayUInt8 encodeURLComponent encodeURLFormComponent encodeXMLComponent
  endsWith endsWithCaseInsensitive endsWithCaseInsensitiveUTF8 endsWithUTF8 equals erf erfc exists exp10 exp2 extract
  extractAll extractAllGroups extractAllGroupsHorizontal extractAllGroupsVertical extractGroups extractKeyValuePairs
  extractKeyValuePairsWithEscaping extractTextFromHTML extractURLParameter extractURLParameterNames
  extractURLParameters farmFingerprint64 farmHash64 firstLine firstSignificantSubdomain
  firstSignificantSubdomainCustom firstSignificantSubdomainCustomRFC firstSignificantSubdomainRFC flattenTuple format
  formatDateTime formatDateTimeInJodaSyntax formatReadableDecimalSize formatReadableQuantity formatReadableSize
  formatReadableTimeDelta fragment fromDaysSinceYearZero fromDaysSinceYearZero32 fromModifiedJulianDay
  fromModifiedJulianDayOrNull fromUnixTimestamp fromUnixTimestamp64Micro fromUnixTimestamp64Milli
  fromUnixTimestamp64Nano fromUnixTimestamp64Second fromUnixTimestampInJodaSyntax fromUTCTimestamp fuzzBits
  gccMurmurHash gcd generateSnowflakeID generateUUIDv4 generateUUIDv7 geoDistance geohashDecode geohashEncode
  getSubcolumn globalIn globalNotIn globalNotNullIn globalNullIn greatCircleAngle greatCircleDistance greater
  greaterOrEquals grouping halfMD5 has hasAll hasAllToken hasAllTokens hasAny hasAnyToken hasAnyTokens hasPhrase
  hasSubstr hasToken hasTokenOrNull highlight hilbertDecode hilbertEncode hiveHash hop hopEnd hopStart icebergHash
  identity ifNotFinite ignore ilike in indexOf indexOfAssumeSorted initcapUTF8 intDiv intDivOrNull intDivOrZero
  intExp10 intExp2 intHash32 intHash64 IPv4CIDRToRange IPv4NumToString IPv4NumToStringClassC IPv4StringToNum
  IPv4StringToNumOrDefault IPv4StringToNumOrNull IPv4ToIPv6 IPv6CIDRToRange IPv6NumToString IPv6StringToNum
  IPv6StringToNumOrDefault IPv6StringToNumOrNull isASCII isDecimalOverflow isDistinctFrom isDynamicElementInSharedData
  isFinite isInfinite isIPAddressInRange isIPv4String isIPv6String isNaN isNotDistinctFrom isNotNull isNullable
  isPrime isProbablePrime isValidASCII isValidJSON isValidUTF8 isZeroOrNull javaHash javaHashUTF16LE JSON_EXISTS
  JSON_QUERY JSON_VALUE JSONAllPaths JSONAllPathsWithTypes JSONAllValues JSONArrayLength JSONDynamicPaths
  JSONDynamicPathsWithTypes JSONExtract JSONExtractArrayRaw JSONExtractArrayRawCaseInsensitive JSONExtractBool
  JSONExtractBoolCaseInsensitive JSONExtractCaseInsensitive JSONExtractFloat JSONExtractFloatCaseInsensitive
  JSONExtractInt JSONExtractIntCaseInsensitive JSONExtractKeys JSONExtractKeysAndValues
  JSONExtractKeysAndValuesCaseInsensitive JSONExtractKeysAndValuesRaw JSONExtractKeysAndValuesRawCaseInsensitive
  JSONExtractKeysCaseInsensitive JSONExtractRaw JSONExtractRawCaseInsensitive JSONExtractString
  JSONExtractStringCaseInsensitive JSONExtractUInt JSONExtractUIntCaseInsensitive JSONHas JSONKey JSONLength
  JSONMergePatch JSONSharedDataPaths JSONSharedDataPathsWithTypes JSONType jumpConsistentHash kafkaMurmurHash
  keccak256 kostikConsistentHash L1Distance L1Norm L1Normalize L2Distance L2DistanceTransposed
  L2DistanceTransposedQuantized L2Norm L2Normalize L2SquaredDistance L2SquaredNorm lambda lcm leftPad leftPadUTF8
  leftUTF8 lengthUTF8 less lessOrEquals lgamma like LinfDistance LinfNorm LinfNormalize log1p lowCardinalityIndices
  lowCardinalityKeys lowerUTF8 LpDistance LpNorm LpNormalize ltrim map MAP_FROM_ARRAYS mapAdd mapAll mapApply
  mapConcat mapContains mapContainsKey mapContainsKeyLike mapContainsValue mapContainsValueLike mapExists
  mapExtractKeyLike mapExtractValueLike mapFilter mapFromArrays mapFromString mapKeys mapPartialReverseSort
  mapPartialSort mapPopulateSeries mapReverseSort mapSort mapSubtract mapUpdate mapValues match matchPhrase
  materialize MD4 MD5 metroHash64 minus mismatches modulo moduloLegacy moduloOrNull moduloOrZero mortonDecode
  mortonEncode multiFuzzyMatchAllIndices multiFuzzyMatchAny multiFuzzyMatchAnyIndex multiIf multiMatchAllIndices
  multiMatchAny multiMatchAnyIndex multiply multiplyDecimal multiSearchAllPositions
  multiSearchAllPositionsCaseInsensitive multiSearchAllPositionsCaseInsensitiveUTF8 multiSearchAllPositionsUTF8
  multiSearchAny multiSearchAnyCaseInsensitive multiSearchAnyCaseInsensitiveUTF8 multiSearchAnyUTF8
  multiSearchFirstIndex multiSearchFirstIndexCaseInsensitive multiSearchFirstIndexCaseInsensitiveUTF8
  multiSearchFirstIndexUTF8 multiSearchFirstPosition multiSearchFirstPositionCaseInsensitive
  multiSearchFirstPositionCaseInsensitiveUTF8 multiSearchFirstPositionUTF8 murmurHash2_32 murmurHash2_64
  murmurHash3_128 murmurHash3_32 murmurHash3_64 naturalSortKey negate netloc ngramDistance
  ngramDistanceCaseInsensitive ngramDistanceCaseInsensitiveUTF8 ngramDistanceUTF8 ngramMinHash ngramMinHashArg
  ngramMinHashArgCaseInsensitive ngramMinHashArgCaseInsensitiveUTF8 ngramMinHashArgUTF8 ngramMinHashCaseInsensitive
  ngramMinHashCaseInsensitiveUTF8 ngramMinHashUTF8 ngrams ngramSearch ngramSearchCaseInsensitive
  ngramSearchCaseInsensitiveUTF8 ngramSearchUTF8 ngramSimHash ngramSimHashCaseInsensitive
  ngramSimHashCaseInsensitiveUTF8 ngramSimHashUTF8 normalizeUTF8NFC normalizeUTF8NFD normalizeUTF8NFKC
  normalizeUTF8NFKCCasefold normalizeUTF8NFKD notEmpty notEquals notILike notIn notLike notNullIn nowInBlock
  nowInBlock64 nullIn or overlayUTF8 parseDateTime parseDateTime32BestEffort parseDateTime32BestEffortOrNull
  parseDateTime32BestEffortOrZero parseDateTime64 parseDateTime64BestEffort parseDateTime64BestEffortOrNull
  parseDateTime64BestEffortOrZero parseDateTime64BestEffortUS parseDateTime64BestEffortUSOrNull
  parseDateTime64BestEffortUSOrZero parseDateTime64InJodaSyntax parseDateTime64InJodaSyntaxOrNull
  parseDateTime64InJodaSyntaxOrZero parseDateTime64OrNull parseDateTime64OrZero parseDateTimeBestEffort
  parseDateTimeBestEffortOrNull parseDateTimeBestEffortOrZero parseDateTimeBestEffortUS
  parseDateTimeBestEffortUSOrNull parseDateTimeBestEffortUSOrZero parseDateTimeInJodaSyntax
  parseDateTimeInJodaSyntaxOrNull parseDateTimeInJodaSyntaxOrZero parseDateTimeOrNull parseDateTimeOrZero
  parseReadableSize parseReadableSizeOrNull parseReadableSizeOrZero parseTimeDelta path pathFull plus port portRFC
  positionCaseInsensitive positionCaseInsensitiveUTF8 positionUTF8 prettyPrintJSON printf proportionsZTest protocol
  queryString queryStringAndFragment rand32 rand64 randBernoulli randBinomial randCanonical randChiSquared
  randConstant randExponential randFisherF randLogNormal randNegativeBinomial randNormal randomFixedString
  randomPrintableASCII randomString randomStringUTF8 randPoisson randStudentT randUniform range regexpExtract
  regexpPosition regexpQuoteMeta reinterpret reinterpretAsDate reinterpretAsDateTime reinterpretAsFixedString
  reinterpretAsFloat32 reinterpretAsFloat64 reinterpretAsInt128 reinterpretAsInt16 reinterpretAsInt256
  reinterpretAsInt32 reinterpretAsInt64 reinterpretAsInt8 reinterpretAsString reinterpretAsUInt128 reinterpretAsUInt16
  reinterpretAsUInt256 reinterpretAsUInt32 reinterpretAsUInt64 reinterpretAsUInt8 reinterpretAsUUID removeAccentsUTF8
  removeDiacriticsUTF8 replaceAll replaceOne replaceRegexpAll replaceRegexpOne replicate reverseBySeparator
  reverseUTF8 rightPad rightPadUTF8 rightUTF8 RIPEMD160 roundAge roundBankers roundDown roundDuration roundToExp2
  rowNumberInAllBlocks rowNumberInBlock rtrim seriesDecomposeSTL seriesOutliersDetectTukey SHA1 SHA224 SHA256 SHA384
  SHA512 SHA512_256 sigmoid simpleJSONExtractBool simpleJSONExtractFloat simpleJSONExtractInt simpleJSONExtractRaw
  simpleJSONExtractString simpleJSONExtractUInt simpleJSONHas sinh sipHash128 sipHash128Keyed sipHash128Reference
  sipHash128ReferenceKeyed sipHash64 sipHash64Keyed snowflakeIDToDateTime snowflakeIDToDateTime64 sparseGrams
  sparseGramsHashes sparseGramsHashesUTF8 sparseGramsUTF8 splitByAlpha splitByChar splitByNonAlpha splitByRegexp
  splitByString splitByWhitespace sqid sqidDecode sqidEncode startsWith startsWithCaseInsensitive
  startsWithCaseInsensitiveUTF8 startsWithUTF8 stringBytesEntropy stringBytesUniq stringJaccardIndex
  stringJaccardIndexUTF8 substringIndex substringIndexUTF8 substringUTF8 subtractDays subtractHours subtractInterval
  subtractMicroseconds subtractMilliseconds subtractMinutes subtractMonths subtractNanoseconds subtractQuarters
  subtractSeconds subtractTupleOfIntervals subtractWeeks subtractYears tgamma throwIf timeSlot timeSlots
  TIMESTAMP_DIFF timestamp_diff timestampDiff timeZoneOf timezoneOf timeZoneOffset timezoneOffset toBFloat16
  toBFloat16OrNull toBFloat16OrZero toBool toColumnTypeName toDate toDate32 toDate32OrDefault toDate32OrNull
  toDate32OrZero toDateOrDefault toDateOrNull toDateOrZero toDateTime toDateTime32 toDateTime64 toDateTime64OrDefault
  toDateTime64OrNull toDateTime64OrZero toDateTimeOrDefault toDateTimeOrNull toDateTimeOrZero toDayOfMonth toDayOfWeek
  toDayOfYear toDaysInMonth toDaysSinceYearZero toDecimal128 toDecimal128OrDefault toDecimal128OrNull
  toDecimal128OrZero toDecimal256 toDecimal256OrDefault toDecimal256OrNull toDecimal256OrZero toDecimal32
  toDecimal32OrDefault toDecimal32OrNull toDecimal32OrZero toDecimal64 toDecimal64OrDefault toDecimal64OrNull
  toDecimal64OrZero toFixedString toFloat32 toFloat32OrDefault toFloat32OrNull toFloat32OrZero toFloat64
  toFloat64OrDefault toFloat64OrNull toFloat64OrZero toHour toInt128 toInt128OrDefault toInt128OrNull toInt128OrZero
  toInt16 toInt16OrDefault toInt16OrNull toInt16OrZero toInt256 toInt256OrDefault toInt256OrNull toInt256OrZero
  toInt32 toInt32OrDefault toInt32OrNull toInt32OrZero toInt64 toInt64OrDefault toInt64OrNull toInt64OrZero toInt8
  toInt8OrDefault toInt8OrNull toInt8OrZero toInterval toIntervalDay toIntervalHour toIntervalMicrosecond
  toIntervalMillisecond toIntervalMinute toIntervalMonth toIntervalNanosecond toIntervalQuarter toIntervalSecond
  toIntervalWeek toIntervalYear toIPv4 toIPv4OrDefault toIPv4OrNull toIPv4OrZero toIPv6 toIPv6OrDefault toIPv6OrNull
  toIPv6OrZero toISOWeek toISOYear toJSONString tokens toLastDayOfMonth toLastDayOfWeek toLowCardinality toMicrosecond
  toMillisecond toMinute toModifiedJulianDay toModifiedJulianDayOrNull toMonday toMonth toMonthNumSinceEpoch
  toNanosecond toNullable topLevelDomain topLevelDomainRFC toQuarter toRelativeDayNum toRelativeHourNum
  toRelativeMinuteNum toRelativeMonthNum toRelativeQuarterNum toRelativeSecondNum toRelativeWeekNum toRelativeYearNum
  toSecond toStartOfDay toStartOfFifteenMinutes toStartOfFiveMinute toStartOfFiveMinutes toStartOfHour
  toStartOfInterval toStartOfISOYear toStartOfMicrosecond toStartOfMillisecond toStartOfMinute toStartOfMonth
  toStartOfNanosecond toStartOfQuarter toStartOfSecond toStartOfTenMinutes toStartOfWeek toStartOfYear toString
  toStringCutToZero toTime toTime64 toTime64OrNull toTime64OrZero toTimeOrNull toTimeOrZero toTimeWithFixedDate
  toTimeZone toTimezone toTypeName toUInt128 toUInt128OrDefault toUInt128OrNull toUInt128OrZero toUInt16
  toUInt16OrDefault toUInt16OrNull toUInt16OrZero toUInt256 toUInt256OrDefault toUInt256OrNull toUInt256OrZero
  toUInt32 toUInt32OrDefault toUInt32OrNull toUInt32OrZero toUInt64 toUInt64OrDefault toUInt64OrNull toUInt64OrZero
  toUInt8 toUInt8OrDefault toUInt8OrNull toUInt8OrZero toUnixTimestamp toUnixTimestamp64Micro toUnixTimestamp64Milli
  toUnixTimestamp64Nano toUnixTimestamp64Second toUTCTimestamp toUUID toUUIDOrDefault toUUIDOrNull toUUIDOrZero
  toValidUTF8 toWeek toYear toYearNumSinceEpoch toYearWeek toYYYYMM toYYYYMMDD toYYYYMMDDhhmmss transform translate
  translateUTF8 trim trimBoth trimLeft trimRight tryBase32Decode tryBase58Decode tryBase64Decode tryBase64URLDecode
  tumble tumbleEnd tumbleStart tuple tupleConcat tupleDivide tupleDivideByNumber tupleElement tupleHammingDistance
  tupleIntDiv tupleIntDivByNumber tupleIntDivOrZero tupleIntDivOrZeroByNumber tupleMinus tupleModulo
  tupleModuloByNumber tupleMultiply tupleMultiplyByNumber tupleNames tupleNegate tuplePlus tuplePositiveModuloByNumber
  tupleToNameValuePairs untuple upperUTF8 URLHash URLHierarchy URLPathHierarchy UUIDNumToString UUIDStringToNum
  UUIDToNum UUIDv7ToDateTime variantElement variantType visibleWidth visitParamExtractBool visitParamExtractFloat
  visitParamExtractInt visitParamExtractRaw visitParamExtractString visitParamExtractUInt visitParamHas widthBucket
  windowID wordShingleMinHash wordShingleMinHashArg wordShingleMinHashArgCaseInsensitive
  wordShingleMinHashArgCaseInsensitiveUTF8 wordShingleMinHashArgUTF8 wordShingleMinHashCaseInsensitive
  wordShingleMinHashCaseInsensitiveUTF8 wordShingleMinHashUTF8 wordShingleSimHash wordShingleSimHashCaseInsensitive
  wordShingleSimHashCaseInsensitiveUTF8 wordShingleSimHashUTF8 wyHash64 xor xxh3 xxh3_128 xxHash32 xxHash64
  xxHash64Spark yandexConsistentHash yesterday YYYYMMDDhhmmssToDateTime64
`)

/** Case-insensitive names, in lower case. */
const FUNCTIONS_OF_ANY_CASE = words(`
  _cast abs acos adddate age array_remove array_to_string arraypartialshuffle arrayshuffle ascii asin atan atan2
  avg2 bin byteslice byteswap cardinality cast ceil ceiling char char_length character_length coalesce concat
  concat_ws cos countsubstrings crc32 crc32ieee crc64 curdate current_date current_timestamp date date_bin
  date_format date_trunc datediff datename day dayofmonth dayofweek dayofyear degrees distancecosine
  distancecosinetransposed distancel1 distancel2 distancel2squared distancel2transposed distancelinf distancelp exp
  factorial firstnondefault flatten floor format_bytes from_base64 from_days from_unixtime from_utc_timestamp
  greatest hassubsequence hassubsequencecaseinsensitive hassubsequencecaseinsensitiveutf8 hassubsequenceutf8
  hastokencaseinsensitive hastokencaseinsensitiveornull hex hour hypot if ifnull inet6_aton inet6_ntoa inet_aton
  inet_ntoa initcap instr isnull json_array_length last_day lcase least left length ln localtime localtimestamp
  locate log log10 log2 lower lpad makedate makedate32 makedatetime makedatetime64 max2 microsecond mid midpoint
  millisecond min2 minute mod modornull month monthname nanosecond natural_sort_key normalizel1 normalizel2
  normalizelinf normalizelp norml1 norml2 norml2squared normlinf normlp not now now64 nullif octet_length overlay pi
  pmod pmodornull position positive_modulo positive_modulo_or_null positivemodulo positivemoduloornull pow power
  quarter radians rand regexp_extract regexp_instr regexp_matches regexp_replace regexp_substr regexpinstr repeat
  replace reverse right round rpad scalarproduct scalarproducttransposed second sign sin soundex space sqr sqrt
  str_to_date str_to_map subdate substr substring substring_index tan tanh time_bucket timediff timestamp to_base64
  to_days to_unixtime to_utc_timestamp today todecimalstring trunc truncate ucase unbin unhex unnest upper
  utc_timestamp utctimestamp vectordifference vectorsum week width_bucket year yearweek yyyymmddhhmmsstodatetime
  yyyymmddtodate yyyymmddtodate32
`)

const AGGREGATES = words(`
  any any_respect_nulls anyHeavy anyLast anyLast_respect_nulls anyLastRespectNulls anyRespectNulls
  anyValueRespectNulls argAndMax argAndMin argMax argMin avgWeighted boundingRatio categoricalInformationValue
  contingency corrMatrix corrStable covarPop covarPopMatrix covarPopStable covarSamp covarSampMatrix covarSampStable
  cramersV cramersVBiasCorrected cume_dist deltaSum deltaSumTimestamp denseRank distinctDynamicTypes
  distinctJSONPaths distinctJSONPathsAndTypes entropy exponentialMovingAverage exponentialTimeDecayedAvg
  exponentialTimeDecayedCount exponentialTimeDecayedMax exponentialTimeDecayedSum firstValueRespectNulls groupArray
  groupArrayInsertAt groupArrayIntersect groupArrayLast groupArrayMovingAvg groupArrayMovingSum groupArraySample
  groupArraySorted groupBitAnd groupBitOr groupBitXor groupConcat groupUniqArray histogram intervalLengthSum kurtPop
  kurtSamp lagInFrame largestTriangleThreeBuckets lastValueRespectNulls leadInFrame lttb mannWhitneyUTest
  maxIntersections maxIntersectionsPosition maxMappedArrays meanZTest median medianBFloat16 medianBFloat16Weighted
  medianDD medianDeterministic medianExact medianExactHigh medianExactLow medianExactWeighted
  medianExactWeightedInterpolated medianGK medianInterpolatedWeighted medianTDigest medianTDigestWeighted
  medianTiming medianTimingWeighted minMappedArrays nonNegativeDerivative percentRank quantile quantileBFloat16
  quantileBFloat16Weighted quantileDD quantileDeterministic quantileExact quantileExactExclusive quantileExactHigh
  quantileExactInclusive quantileExactLow quantileExactWeighted quantileExactWeightedInterpolated quantileGK
  quantileInterpolatedWeighted quantilePrometheusHistogram quantiles quantilesBFloat16 quantilesBFloat16Weighted
  quantilesDD quantilesDeterministic quantilesExact quantilesExactExclusive quantilesExactHigh
  quantilesExactInclusive quantilesExactLow quantilesExactWeighted quantilesExactWeightedInterpolated quantilesGK
  quantilesInterpolatedWeighted quantilesPrometheusHistogram quantilesTDigest quantilesTDigestWeighted
  quantilesTiming quantilesTimingWeighted quantileTDigest quantileTDigestWeighted quantileTiming
  quantileTimingWeighted rankCorr retention sequenceCount sequenceMatch sequenceMatchEvents sequenceNextNode
  simpleLinearRegression singleValueOrNull skewPop skewSamp sparkBar sparkbar stddevPop stddevPopStable stddevSamp
  stddevSampStable studentTTest studentTTestOneSample sumCount sumKahan sumMapFiltered sumMapFilteredWithOverflow
  sumMappedArrays sumMapWithOverflow sumWithOverflow theilsU topK topKWeighted uniq uniqCombined uniqCombined64
  uniqExact uniqHLL12 uniqUpTo varPop varPopStable varSamp varSampStable welchTTest windowFunnel
`)

/** Case-insensitive names, like {@link FUNCTIONS_OF_ANY_CASE}. */
const AGGREGATES_OF_ANY_CASE = words(`
  analysisofvariance anova any_value any_value_respect_nulls approx_top_count approx_top_k approx_top_sum array_agg
  array_concat_agg avg bit_and bit_or bit_xor corr count covar_pop covar_samp dense_rank first_value
  first_value_respect_nulls group_concat kolmogorovsmirnovtest lag last_value last_value_respect_nulls lead max
  max_by min min_by nth_value ntile percent_rank rank row_number std stddev stddev_pop stddev_samp string_agg sum
  var_pop var_samp
`)

/** Longer than any name with some combinators: each of them is looked for in the whole name. */
const NAME_LENGTH_MAX = 200

/** Suffixes of aggregate functions, which may be combined. */
const COMBINATOR = /(If|Array|Map|Distinct|OrNull|OrDefault|ForEach|ArgMin|ArgMax|Resample)$/

/**
 * Functions whose first argument may be the name of a function: `arrayMap(upper, tags)`. The parser treats that name as an
 * identifier.
 */
const TAKE_FUNCTIONS = words(`
  arrayAll arrayAvg arrayCompact arrayCount arrayCumSum arrayCumSumNonNegative arrayDifference arrayExists arrayFill
  arrayFilter arrayFirst arrayFirstIndex arrayFirstOrNull arrayFold arrayLast arrayLastIndex arrayLastOrNull arrayMap
  arrayMax arrayMin arrayPartialReverseSort arrayPartialSort arrayProduct arrayReverseFill arrayReverseSort
  arrayReverseSplit arraySort arraySplit arraySum mapAll mapApply mapExists mapFilter mapPartialReverseSort
  mapPartialSort mapReverseSort mapSort
`)

/** Functions that are called by their name alone, unless the query defines that name. */
const CALLS_BY_NAME = words(
  'currentdatabase current_database currentuser current_user database schema session_user user',
)

/** Table functions that read no data. */
const TABLE_FUNCTIONS = words('numbers generateSeries generate_series values')

/** Whether tenant SQL may call the function, spelled this way. */
export function isAllowedFunction(name: string): boolean {
  if (name.length > NAME_LENGTH_MAX) return false
  return FUNCTIONS.has(name) || FUNCTIONS_OF_ANY_CASE.has(name.toLowerCase()) || isAllowedAggregate(name)
}

/** Whether the function calls the function named by its first argument. */
export function takesFunction(name: string): boolean {
  return TAKE_FUNCTIONS.has(name)
}

/** Whether the name, used like a column, calls a function that tenant SQL may not call. */
export function isCallByName(name: string): boolean {
  return CALLS_BY_NAME.has(name.toLowerCase())
}

export function isAllowedTableFunction(name: string): boolean {
  return TABLE_FUNCTIONS.has(name)
}

function isAllowedAggregate(name: string): boolean {
  if (AGGREGATES.has(name) || AGGREGATES_OF_ANY_CASE.has(name.toLowerCase())) return true
  const base = name.replace(COMBINATOR, '')
  return base !== name && isAllowedAggregate(base)
}

function words(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/))
}
