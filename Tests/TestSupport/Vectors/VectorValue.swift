import Foundation

/// A value in `Protocol-vectors.json`.
///
/// Integers of 64 bits are texts, since JSON's numbers aren't exact beyond 2^53; smaller ones are numbers. Bytes are texts of hexadecimal digits.
public indirect enum VectorValue: Hashable, Sendable, Codable {
  case number(UInt64)
  case text(String)
  case list([VectorValue])
  case object([String: VectorValue])

  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if let number = try? container.decode(UInt64.self) {
      self = .number(number)
    } else if let text = try? container.decode(String.self) {
      self = .text(text)
    } else if let list = try? container.decode([VectorValue].self) {
      self = .list(list)
    } else {
      self = .object(try container.decode([String: VectorValue].self))
    }
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .number(let number): try container.encode(number)
    case .text(let text): try container.encode(text)
    case .list(let list): try container.encode(list)
    case .object(let object): try container.encode(object)
    }
  }

  public var fields: VectorFields {
    get throws {
      guard case .object(let object) = self else { throw TestFailure("\(self) isn't an object") }
      return VectorFields(object)
    }
  }

  public var list: [VectorValue] {
    get throws {
      guard case .list(let list) = self else { throw TestFailure("\(self) isn't a list") }
      return list
    }
  }
}

/// The fields of a frame, or of a structure in one, by their names in `Protocol.md`.
public struct VectorFields: Hashable, Sendable {
  public var values: [String: VectorValue]

  public init(_ values: [String: VectorValue] = [:]) {
    self.values = values
  }

  public subscript(name: String) -> VectorValue {
    get throws {
      guard let value = values[name] else { throw TestFailure("field '\(name)' is missing in \(values)") }
      return value
    }
  }

  // MARK: Reading

  public func integer<I: FixedWidthInteger>(_ name: String, as type: I.Type = I.self) throws -> I {
    switch try self[name] {
    case .number(let number) where I.bitWidth < 64:
      if let value = I(exactly: number) { return value }
    case .text(let text) where I.bitWidth == 64:
      if let value = I(text) { return value }
    default: break
    }
    throw TestFailure("field '\(name)' isn't an integer of \(I.bitWidth) bits: \(try self[name])")
  }

  public func text(_ name: String) throws -> String {
    guard case .text(let text) = try self[name] else { throw TestFailure("field '\(name)' isn't a text") }
    return text
  }

  public func bytes(_ name: String) throws -> [UInt8] { [UInt8](hex: try text(name)) }

  public func list(_ name: String) throws -> [VectorFields] { try self[name].list.map { try $0.fields } }

  // MARK: Writing

  public mutating func set<I: FixedWidthInteger>(_ name: String, _ value: I) {
    values[name] = I.bitWidth == 64 ? .text("\(value)") : .number(UInt64(value))
  }

  public mutating func set(_ name: String, _ value: String) { values[name] = .text(value) }

  public mutating func set(_ name: String, bytes: [UInt8]) {
    values[name] = .text(bytes.hex.filter { $0 != " " })
  }

  public mutating func set(_ name: String, _ list: [VectorFields]) {
    values[name] = .list(list.map { .object($0.values) })
  }
}
