/// Parses arguments like GNU programs: `--name value`, `--name=value`, options and operands in any order, `--` before
/// operands that begin with a dash.
public struct ArgumentParser {
  private let page: CommandPage
  private let options: [String: CommandOption]

  /// - Parameter shared: further options, which all commands of the program have.
  public init(_ page: CommandPage, shared: [CommandOption] = []) {
    self.page = page
    options = Dictionary(
      (page.options + shared).map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
  }

  /// Parses `arguments`, which don't include the program's name.
  ///
  /// - Parameter environment: returns the value of an environment variable, for options that weren't given.
  /// - Throws: ``UsageError``.
  public func parse(
    _ arguments: some Sequence<Argument>, environment: (String) -> String? = { _ in nil }
  ) throws(UsageError) -> ParsedArguments {
    var parsed = try scan(arguments, stopsAtOperand: false).parsed
    guard !parsed.wantsHelp else { return parsed }
    try addEnvironment(environment, to: &parsed)
    try check(parsed.operandArguments)
    return parsed
  }

  /// Parses options up to the first operand.
  ///
  /// - Returns: the parsed options, and the operand with everything after it.
  /// - Throws: ``UsageError``.
  public func parseHead(
    _ arguments: some Sequence<Argument>
  ) throws(UsageError) -> (parsed: ParsedArguments, rest: [Argument]) {
    try scan(arguments, stopsAtOperand: true)
  }

  private func scan(
    _ arguments: some Sequence<Argument>, stopsAtOperand: Bool
  ) throws(UsageError) -> (parsed: ParsedArguments, rest: [Argument]) {
    var parsed = ParsedArguments()
    var left = Array(arguments)[...]
    while let argument = left.popFirst() {
      if argument == "--" {
        if stopsAtOperand { return (parsed, Array(left)) }
        parsed.operandArguments += left
        break
      }
      // A single dash is an operand, by convention for standard input.
      guard argument.bytes.first == UInt8(ascii: "-"), argument != "-" else {
        if stopsAtOperand { return (parsed, [argument] + left) }
        parsed.operandArguments.append(argument)
        continue
      }
      if argument == "--help" || argument == "-h" {
        parsed.wantsHelp = true
        return (parsed, [])
      }
      try read(argument, &left, into: &parsed)
    }
    return (parsed, [])
  }

  private func read(
    _ argument: Argument, _ left: inout ArraySlice<Argument>, into parsed: inout ParsedArguments
  ) throws(UsageError) {
    if let long = long(argument) {
      for argument in long.dropLast() { try read(argument, &left, into: &parsed) }
      return try read(long[long.count - 1], &left, into: &parsed)
    }
    let parts = argument.bytes.split(
      separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
    let word = Argument(parts[0]).text
    let name = String(word.dropFirst(2))
    guard word.hasPrefix("--"), let option = options[name] else { throw unknown(word) }
    if let reason = option.unavailable { throw UsageError(reason) }
    var value = parts.count > 1 ? Argument(parts[1]) : nil
    if option.value == nil {
      guard value == nil else { throw UsageError("--\(name) takes no value") }
      value = ""
    } else if value == nil {
      value = option.bare.map { Argument($0) } ?? left.popFirst()
    }
    guard let value else {
      throw UsageError("--\(name) needs a value: --\(name) \(option.value ?? "")")
    }
    guard value.isText || option.takesBytes else {
      throw UsageError("--\(name): '\(value.text)' isn't UTF-8; give it as text")
    }
    guard option.isRepeatable || option.value == nil || parsed.values[name] == nil else {
      throw UsageError("--\(name) is given twice; give it once")
    }
    parsed.values[name, default: []].append(value)
  }

  /// The options of the letters after a single dash: `-n5` is `--count=5`, `-qv` is `--quiet --verbose`. Nil for any other word.
  private func long(_ argument: Argument) -> [Argument]? {
    guard !argument.bytes.starts(with: "--".utf8) else { return nil }
    var found: [Argument] = []
    var rest = argument.bytes.dropFirst()
    while let byte = rest.popFirst() {
      let letter = Character(Unicode.Scalar(byte))
      guard let option = options.values.first(where: { $0.letter == letter }) else { return nil }
      let name = "--\(option.name)"
      if option.value != nil, !rest.isEmpty { return found + [Argument(Array("\(name)=".utf8) + rest)] }
      found.append(Argument(name))
    }
    return found
  }

  private func addEnvironment(
    _ environment: (String) -> String?, to parsed: inout ParsedArguments
  ) throws(UsageError) {
    for (name, option) in options.sorted(by: { $0.key < $1.key }) where parsed.values[name] == nil {
      guard let variable = option.environment, let text = environment(variable), !text.isEmpty else {
        continue
      }
      if let reason = option.unavailable { throw UsageError("\(variable): \(reason)") }
      parsed.origins[name] = variable
      parsed.values[name] = (option.isRepeatable ? Self.parts(of: text, option) : [text]).map { Argument($0) }
    }
  }

  private static func parts(of text: String, _ option: CommandOption) -> [String] {
    text.split { $0 == "," || ($0 == " " && !option.hasSpaces) }.map(String.init)
  }

  private func check(_ operands: [Argument]) throws(UsageError) {
    let needed = page.operands.filter { $0.arity == .required }
    guard operands.count >= needed.count else {
      throw UsageError("\(page.word) needs \(needed[operands.count].name)")
    }
    for (index, argument) in operands.enumerated() where !argument.isText {
      guard let operand = page.operands.dropFirst(index).first ?? page.operands.last, !operand.takesBytes
      else {
        continue
      }
      throw UsageError("\(operand.name): '\(argument.text)' isn't UTF-8; give it as text")
    }
    if page.operands.last?.arity == .repeated { return }
    guard operands.count <= page.operands.count else {
      throw UsageError("'\(operands[page.operands.count].text)' is one argument too many")
    }
  }

  private func unknown(_ argument: String) -> UsageError {
    let available = options.values.filter { $0.unavailable == nil }.map(\.name).sorted() + ["help"]
    let word = String(argument.drop { $0 == "-" })
    if let nearest = Spelling.nearest(to: word, in: available) {
      return UsageError("there is no option \(argument); did you mean --\(nearest)?")
    }
    let hint = page.operands.isEmpty ? "" : "; write an argument that begins with a dash after --"
    return UsageError("there is no option \(argument)\(hint)")
  }
}

/// The arguments of a command line, checked against a ``CommandPage``.
public struct ParsedArguments: Sendable {
  /// The operands as text, which is exact unless the page allows bytes.
  public var operands: [String] { operandArguments.map(\.text) }
  /// The arguments that aren't options.
  public internal(set) var operandArguments: [Argument] = []
  /// Whether `--help` was given. Nothing else was checked then.
  public internal(set) var wantsHelp = false
  /// The values by option name; an option without a value has an empty text for each time it is given.
  var values: [String: [Argument]] = [:]
  /// The origin of values that aren't from the command line: an environment variable, or a place in a file.
  var origins: [String: String] = [:]

  public init() {}

  /// Whether an option was given.
  public func has(_ option: String) -> Bool { values[option] != nil }

  /// The value of an option; the last one if it was given several times.
  public func text(_ option: String) -> String? { values[option]?.last?.text }

  /// All values of an option, in order.
  public func texts(_ option: String) -> [String] { values[option]?.map(\.text) ?? [] }

  /// The value of an option that takes bytes.
  public func bytes(_ option: String) -> [UInt8]? { values[option]?.last?.bytes }

  /// The value of an option that names a file.
  public func path(_ option: String) -> FilePath? { bytes(option).map { FilePath($0) } }

  /// The source of an option's value, other than the command line: a variable of the environment, or a place in a file.
  public func origin(of option: String) -> String? { origins[option] }

  /// Adds an option, unless it was given.
  ///
  /// - Parameter origin: the source of the values, which begins messages about them.
  public mutating func add(_ option: String, _ texts: [String], from origin: String) {
    guard values[option] == nil else { return }
    values[option] = texts.map { Argument($0) }
    origins[option] = origin
  }

  /// The value of an option, read by `read`.
  ///
  /// - Throws: ``UsageError`` that names the option, or the environment variable that it came from.
  public func value<Value>(
    _ option: String, _ read: (String) throws(ValueError) -> Value
  ) throws(UsageError) -> Value? {
    guard let text = text(option) else { return nil }
    return try value(option) { () throws(ValueError) in try read(text) }
  }

  /// All values of an option, each read by `read`.
  ///
  /// - Throws: as ``value(_:_:)``.
  public func values<Value>(
    _ option: String, _ read: (String) throws(ValueError) -> Value
  ) throws(UsageError) -> [Value] {
    var result: [Value] = []
    for text in texts(option) {
      result.append(try value(option) { () throws(ValueError) in try read(text) })
    }
    return result
  }

  /// All values of an option that takes bytes, each read by `read`.
  ///
  /// - Throws: as ``value(_:_:)``.
  public func values<Value>(
    _ option: String, bytes read: ([UInt8]) throws(ValueError) -> Value
  ) throws(UsageError) -> [Value] {
    var result: [Value] = []
    for argument in values[option] ?? [] {
      result.append(try value(option) { () throws(ValueError) in try read(argument.bytes) })
    }
    return result
  }

  /// - Throws: ``UsageError`` if more than one of `options` was given.
  public func allowOne(of options: String...) throws(UsageError) {
    let given = options.filter(has)
    guard given.count > 1 else { return }
    throw UsageError("--\(given[0]) and --\(given[1]) exclude each other; give one of them")
  }

  private func value<Value>(
    _ option: String, _ read: () throws(ValueError) -> Value
  ) throws(UsageError) -> Value {
    do {
      return try read()
    } catch {
      throw UsageError("\(origins[option] ?? "--\(option)"): \(error)")
    }
  }
}

/// An error about arguments, in one line.
public struct UsageError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The error and the remedy.
  public var description: String

  public init(_ description: String) {
    self.description = description
  }
}

/// An error about a text that isn't a valid value.
public struct ValueError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The error, which quotes the text: "'7x' isn't a number".
  public var description: String

  public init(_ description: String) {
    self.description = description
  }
}
