import SluiceWire

/// Converts one type of frame, or structure, to fields and back.
public struct VectorLayout<Value>: Sendable {
  struct Field: Sendable {
    var get: @Sendable (Value, inout VectorFields) -> Void
    var set: @Sendable (inout Value, VectorFields) throws -> Void
  }

  /// An empty value; all of its fields are then set.
  var blank: @Sendable () -> Value
  var fields: [Field]

  init(_ blank: @escaping @Sendable @autoclosure () -> Value, _ fields: Field...) {
    self.blank = blank
    self.fields = fields
  }

  public func fields(of value: Value) -> VectorFields {
    var fields = VectorFields()
    for field in self.fields { field.get(value, &fields) }
    return fields
  }

  public func value(from fields: VectorFields) throws -> Value {
    var value = blank()
    for field in self.fields { try field.set(&value, fields) }
    guard self.fields(of: value).values.keys == fields.values.keys else {
      throw TestFailure(
        "\(Value.self) has fields \(self.fields(of: value).values.keys.sorted()), not \(fields)")
    }
    return value
  }
}

extension VectorLayout.Field {
  typealias Path<T> = any WritableKeyPath<Value, T> & Sendable

  static func integer<I: FixedWidthInteger & Sendable>(_ name: String, _ path: Path<I>) -> Self {
    Self {
      $1.set(name, $0[keyPath: path])
    } set: {
      $0[keyPath: path] = try $1.integer(name)
    }
  }

  static func text(_ name: String, _ path: Path<String>) -> Self {
    Self {
      $1.set(name, $0[keyPath: path])
    } set: {
      $0[keyPath: path] = try $1.text(name)
    }
  }

  static func bytes(_ name: String, _ path: Path<[UInt8]>) -> Self {
    Self {
      $1.set(name, bytes: $0[keyPath: path])
    } set: {
      $0[keyPath: path] = try $1.bytes(name)
    }
  }

  static func flag(_ name: String, _ path: Path<Bool>) -> Self {
    Self {
      $1.set(name, $0[keyPath: path] ? 1 : 0 as UInt8)
    } set: {
      $0[keyPath: path] = try $1.integer(name, as: UInt8.self) != 0
    }
  }

  /// A number with names.
  static func named<R: RawRepresentable & Sendable>(_ name: String, _ path: Path<R>) -> Self
  where R.RawValue: FixedWidthInteger {
    Self {
      $1.set(name, $0[keyPath: path].rawValue)
    } set: {
      let number: R.RawValue = try $1.integer(name)
      guard let value = R(rawValue: number) else { throw TestFailure("\(name) can't be \(number)") }
      $0[keyPath: path] = value
    }
  }

  /// A field, or several related ones.
  static func custom(
    _ get: @escaping @Sendable (Value, inout VectorFields) -> Void,
    set: @escaping @Sendable (inout Value, VectorFields) throws -> Void
  ) -> Self {
    Self(get: get, set: set)
  }

  static func list<Element: Sendable>(
    _ name: String, _ path: Path<[Element]>, _ layout: VectorLayout<Element>
  ) -> Self {
    Self {
      $1.set(name, $0[keyPath: path].map { layout.fields(of: $0) })
    } set: {
      $0[keyPath: path] = try $1.list(name).map { try layout.value(from: $0) }
    }
  }

  /// `start` and `start value`.
  static func start(_ path: Path<Subscribe.Start>) -> Self {
    Self {
      let (number, value) = $0[keyPath: path].numbers
      $1.set("start", number)
      $1.set("start value", value)
    } set: {
      let value: UInt64 = try $1.integer("start value")
      switch try $1.integer("start", as: UInt8.self) {
      case 0: $0[keyPath: path] = .replay
      case 1: $0[keyPath: path] = .earliest
      case 2: $0[keyPath: path] = .new
      case 3: $0[keyPath: path] = .last(value)
      case 4: $0[keyPath: path] = .offset(value)
      case 5: $0[keyPath: path] = .time(Int64(bitPattern: value))
      case let other: throw TestFailure("start position \(other) isn't defined")
      }
    }
  }

  /// 0 and 1 are policies, 2 means the topic's policy.
  static func lag(_ path: Path<Subscribe.LagPolicy?>) -> Self {
    Self {
      $1.set("lag", $0[keyPath: path]?.rawValue ?? 2)
    } set: {
      $0[keyPath: path] = Subscribe.LagPolicy(rawValue: try $1.integer("lag"))
    }
  }

  static func filter(_ path: Path<RecordFilter>) -> Self {
    Self {
      $1.set("filter", $0[keyPath: path].conditions.map { VectorFields(condition: $0) })
    } set: {
      $0[keyPath: path] = RecordFilter(try $1.list("filter").map { try $0.condition })
    }
  }

  /// A list of keys and values.
  static func settings(_ path: Path<TopicSettings>) -> Self {
    Self {
      $1.set(
        "settings",
        $0[keyPath: path].numbered.map { setting in
          var fields = VectorFields()
          fields.set("key", setting.key)
          fields.set("value", setting.value)
          return fields
        })
    } set: {
      for setting in try $1.list("settings") {
        guard $0[keyPath: path].set(try setting.integer("key"), to: try setting.integer("value")) else {
          throw TestFailure("\(setting) isn't a setting")
        }
      }
    }
  }

  static func credentials(_ path: Path<Credentials>) -> Self {
    Self {
      $1.set("method", $0[keyPath: path].method.rawValue)
      $1.set("user", $0[keyPath: path].user)
      $1.set("secret", $0[keyPath: path].secret)
    } set: {
      let (user, secret) = (try $1.text("user"), try $1.text("secret"))
      switch try $1.integer("method", as: UInt8.self) {
      case 0: $0[keyPath: path] = .none
      case 1: $0[keyPath: path] = .password(secret, user: user)
      case 2: $0[keyPath: path] = .token(secret)
      case 3: $0[keyPath: path] = .node(onBehalfOf: user, carrying: secret)
      case let other: throw TestFailure("method \(other) isn't defined")
      }
    }
  }
}

extension Subscribe.Start {
  fileprivate var numbers: (UInt8, UInt64) {
    switch self {
    case .replay: (0, 0)
    case .earliest: (1, 0)
    case .new: (2, 0)
    case .last(let count): (3, count)
    case .offset(let offset): (4, offset)
    case .time(let time): (5, UInt64(bitPattern: time))
    }
  }
}

extension VectorFields {
  fileprivate init(condition: RecordFilter.Condition) {
    self.init()
    switch condition.subject {
    case .key:
      set("subject", 0 as UInt8)
      set("header", "")
    case .header(let name):
      set("subject", 1 as UInt8)
      set("header", name)
    }
    switch condition.test {
    case .exists:
      set("test", 0 as UInt8)
      set("value", bytes: [])
    case .equals(let value):
      set("test", 1 as UInt8)
      set("value", bytes: value)
    case .hasPrefix(let value):
      set("test", 2 as UInt8)
      set("value", bytes: value)
    }
  }

  fileprivate var condition: RecordFilter.Condition {
    get throws {
      let subject: RecordFilter.Subject =
        try integer("subject", as: UInt8.self) == 0 ? .key : .header(try text("header"))
      switch try integer("test", as: UInt8.self) {
      case 0: return .init(subject, .exists)
      case 1: return .init(subject, .equals(try bytes("value")))
      default: return .init(subject, .hasPrefix(try bytes("value")))
      }
    }
  }
}
