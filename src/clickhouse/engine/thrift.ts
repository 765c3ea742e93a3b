/** The part of Thrift's compact protocol that Parquet footers use. */
export const TYPE = {
  true: 1,
  false: 2,
  byte: 3,
  i16: 4,
  i32: 5,
  i64: 6,
  double: 7,
  binary: 8,
  list: 9,
  set: 10,
  struct: 12,
}

export interface Field {
  readonly id: number
  readonly type: number
  readonly value: Value
}
export interface List {
  readonly elementType: number
  readonly items: readonly Value[]
}
/** Integers are bigints; strings and doubles are raw bytes, and so are encoded structs in a list. */
export type Value = bigint | boolean | Buffer | List | Field[]

export class ThriftReader {
  private at = 0

  constructor(private readonly data: Buffer) {}

  struct(): Field[] {
    const fields: Field[] = []
    for (let id = 0; ; ) {
      const head = this.data[this.at++]
      if (head === 0) return fields
      id = head >> 4 === 0 ? Number(this.zigzag()) : id + (head >> 4)
      const type = head & 15
      fields.push({ id, type, value: type === TYPE.true ? true : type === TYPE.false ? false : this.value(type) })
    }
  }

  private value(type: number): Value {
    switch (type) {
      case TYPE.byte:
        return this.take(1)
      case TYPE.i16:
      case TYPE.i32:
      case TYPE.i64:
        return this.zigzag()
      case TYPE.double:
        return this.take(8)
      case TYPE.binary:
        return this.take(Number(this.varint()))
      case TYPE.list:
      case TYPE.set:
        return this.list()
      case TYPE.struct:
        return this.struct()
      default:
        throw new Error(`unsupported Thrift type ${type} in a Parquet footer`)
    }
  }

  private list(): List {
    const head = this.data[this.at++]
    const size = head >> 4 === 15 ? Number(this.varint()) : head >> 4
    const elementType = head & 15
    // In a list, a boolean takes one byte.
    const isBoolean = elementType === TYPE.true || elementType === TYPE.false
    const items = Array.from({ length: size }, () => (isBoolean ? this.take(1) : this.value(elementType)))
    return { elementType, items }
  }

  private take(length: number): Buffer {
    this.at += length
    return this.data.subarray(this.at - length, this.at)
  }

  private varint(): bigint {
    for (let value = 0n, shift = 0n; ; shift += 7n) {
      const byte = this.data[this.at++]
      value |= BigInt(byte & 127) << shift
      if (byte < 128) return value
    }
  }

  private zigzag(): bigint {
    const value = this.varint()
    return (value >> 1n) ^ -(value & 1n)
  }
}

export class ThriftWriter {
  private readonly parts: Uint8Array[] = []

  bytes(): Buffer {
    return Buffer.concat(this.parts)
  }

  struct(fields: readonly Field[]): void {
    let last = 0
    for (const { id, type, value } of fields) {
      const step = id - last
      if (step > 0 && step < 16) this.byte((step << 4) | type)
      else {
        this.byte(type)
        this.zigzag(BigInt(id))
      }
      last = id
      if (typeof value !== 'boolean') this.value(type, value)
    }
    this.byte(0)
  }

  private value(type: number, value: Value): void {
    if (typeof value === 'bigint') this.zigzag(value)
    else if (Buffer.isBuffer(value)) {
      if (type === TYPE.binary) this.varint(BigInt(value.length))
      this.parts.push(value)
    } else if (Array.isArray(value)) this.struct(value)
    else this.list(value as List)
  }

  private list({ elementType, items }: List): void {
    if (items.length < 15) this.byte((items.length << 4) | elementType)
    else {
      this.byte((15 << 4) | elementType)
      this.varint(BigInt(items.length))
    }
    for (const item of items) this.value(elementType, item)
  }

  private byte(value: number): void {
    this.parts.push(Uint8Array.of(value))
  }

  private zigzag(value: bigint): void {
    this.varint(BigInt.asUintN(64, (value << 1n) ^ (value >> 63n)))
  }

  private varint(value: bigint): void {
    let rest = value
    for (; rest > 127n; rest >>= 7n) this.byte(Number(rest & 127n) | 128)
    this.byte(Number(rest))
  }
}
