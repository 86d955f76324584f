/// What was given on a command line, checked against a ``CommandPage``.
public struct ParsedArguments: Sendable {
  public internal(set) var operands: [String] = []
  /// True when `--help` was given: nothing else was checked then.
  public internal(set) var wantsHelp = false
  /// The values by option; for an option without value, an empty text each time.
  var values: [String: [String]] = [:]
  /// The environment variable, or the place in a file, behind values that came from there.
  var origins: [String: String] = [:]

  public init() {}

  /// Whether an option was given.
  public func has(_ option: String) -> Bool { values[option] != nil }

  /// The value of an option, the last one if it was given several times.
  public func text(_ option: String) -> String? { values[option]?.last }

  /// All values of an option, in order.
  public func texts(_ option: String) -> [String] { values[option] ?? [] }

  /// Where an option's value came from, if not from the command line: a variable of the environment, or a place in a file.
  public func origin(of option: String) -> String? { origins[option] }

  /// Has an option count as given, unless it is.
  ///
  /// - Parameter origin: where the values came from, as mistakes in them are to begin.
  public mutating func add(_ option: String, _ texts: [String], from origin: String) {
    guard values[option] == nil else { return }
    values[option] = texts
    origins[option] = origin
  }

  /// The value of an option, read by `read`.
  ///
  /// - Throws: ``UsageError`` that names the option, or the environment variable that it came from.
  public func value<Value>(
    _ option: String, _ read: (String) throws(ValueError) -> Value
  ) throws(UsageError) -> Value? {
    guard let text = text(option) else { return nil }
    return try value(option, text, read)
  }

  /// All values of an option, each read by `read`.
  ///
  /// - Throws: as ``value(_:_:)``.
  public func values<Value>(
    _ option: String, _ read: (String) throws(ValueError) -> Value
  ) throws(UsageError) -> [Value] {
    var result: [Value] = []
    for text in texts(option) { result.append(try value(option, text, read)) }
    return result
  }

  /// - Throws: ``UsageError`` when more than one of `options` was given.
  public func allowOne(of options: String...) throws(UsageError) {
    let given = options.filter(has)
    guard given.count > 1 else { return }
    throw UsageError("--\(given[0]) and --\(given[1]) exclude each other; give one of them")
  }

  private func value<Value>(
    _ option: String, _ text: String, _ read: (String) throws(ValueError) -> Value
  ) throws(UsageError) -> Value {
    do {
      return try read(text)
    } catch {
      throw UsageError("\(origins[option] ?? "--\(option)"): \(error)")
    }
  }
}
