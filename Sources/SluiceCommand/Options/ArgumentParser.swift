/// Reads arguments as GNU programs do: `--name value`, `--name=value`, options and operands in any order, `--` before
/// operands that begin with a dash.
public struct ArgumentParser {
  private let page: CommandPage
  private let options: [String: CommandOption]

  /// - Parameter shared: options that the command takes as well, because all of its program do.
  public init(_ page: CommandPage, shared: [CommandOption] = []) {
    self.page = page
    options = Dictionary(
      (page.options + shared).map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
  }

  /// Reads `arguments`, without the program's name.
  ///
  /// - Parameter environment: where options that weren't given are looked up.
  /// - Throws: ``UsageError``.
  public func parse(
    _ arguments: some Sequence<String>, environment: (String) -> String? = { _ in nil }
  ) throws(UsageError) -> ParsedArguments {
    var parsed = try scan(arguments, stopsAtOperand: false).parsed
    guard !parsed.wantsHelp else { return parsed }
    try addEnvironment(environment, to: &parsed)
    try check(parsed.operands)
    return parsed
  }

  /// Reads options up to the first operand.
  ///
  /// - Returns: what was read, and the operand with everything after it.
  /// - Throws: ``UsageError``.
  public func parseHead(
    _ arguments: some Sequence<String>
  ) throws(UsageError) -> (parsed: ParsedArguments, rest: [String]) {
    try scan(arguments, stopsAtOperand: true)
  }

  private func scan(
    _ arguments: some Sequence<String>, stopsAtOperand: Bool
  ) throws(UsageError) -> (parsed: ParsedArguments, rest: [String]) {
    var parsed = ParsedArguments()
    var left = Array(arguments)[...]
    while let argument = left.popFirst() {
      if argument == "--" {
        if stopsAtOperand { return (parsed, Array(left)) }
        parsed.operands += left
        break
      }
      // A dash alone is an operand: by custom, standard input.
      guard argument.hasPrefix("-"), argument != "-" else {
        if stopsAtOperand { return (parsed, [argument] + left) }
        parsed.operands.append(argument)
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
    _ argument: String, _ left: inout ArraySlice<String>, into parsed: inout ParsedArguments
  ) throws(UsageError) {
    if let long = long(argument) {
      for argument in long.dropLast() { try read(argument, &left, into: &parsed) }
      return try read(long[long.count - 1], &left, into: &parsed)
    }
    let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    let name = String(parts[0].dropFirst(2))
    guard argument.hasPrefix("--"), let option = options[name] else {
      throw unknown(String(parts[0]))
    }
    if let reason = option.unavailable { throw UsageError(reason) }
    var value = parts.count > 1 ? String(parts[1]) : nil
    if option.value == nil {
      guard value == nil else { throw UsageError("--\(name) takes no value") }
      value = ""
    } else if value == nil {
      value = option.bare ?? left.popFirst()
    }
    guard let value else {
      throw UsageError("--\(name) needs a value: --\(name) \(option.value ?? "")")
    }
    if option.isRepeatable {
      parsed.values[name, default: []].append(value)
    } else {
      parsed.values[name] = [value]
    }
  }

  /// The options that letters behind a single dash stand for: `-n5` is `--count=5`, `-qv` is `--quiet --verbose`. Nil for what is no such word.
  private func long(_ argument: String) -> [String]? {
    guard !argument.hasPrefix("--") else { return nil }
    var found: [String] = []
    var rest = argument.dropFirst()
    while let letter = rest.popFirst() {
      guard let option = options.values.first(where: { $0.letter == letter }) else { return nil }
      let name = "--\(option.name)"
      if option.value != nil, !rest.isEmpty { return found + ["\(name)=\(rest)"] }
      found.append(name)
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
      parsed.values[name] = option.isRepeatable ? Self.parts(of: text, option) : [text]
    }
  }

  private static func parts(of text: String, _ option: CommandOption) -> [String] {
    text.split { $0 == "," || ($0 == " " && !option.hasSpaces) }.map(String.init)
  }

  private func check(_ operands: [String]) throws(UsageError) {
    let needed = page.operands.filter { $0.arity == .required }
    guard operands.count >= needed.count else {
      throw UsageError("\(page.word) needs \(needed[operands.count].name)")
    }
    if page.operands.last?.arity == .repeated { return }
    guard operands.count <= page.operands.count else {
      throw UsageError("'\(operands[page.operands.count])' is one argument too many")
    }
  }

  private func unknown(_ argument: String) -> UsageError {
    let available = options.values.filter { $0.unavailable == nil }.map(\.name).sorted() + ["help"]
    let word = String(argument.drop { $0 == "-" })
    if let nearest = Spelling.nearest(to: word, in: available) {
      return UsageError("there is no option \(argument); did you mean --\(nearest)?")
    }
    let hint = page.operands.isEmpty ? "" : "; an argument that begins with a dash goes behind --"
    return UsageError("there is no option \(argument)\(hint)")
  }
}

/// The arguments of a command line, checked against a ``CommandPage``.
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

  /// The source of an option's value, other than the command line: a variable of the environment, or a place in a file.
  public func origin(of option: String) -> String? { origins[option] }

  /// Adds an option, unless it was given.
  ///
  /// - Parameter origin: the source of the values, with which messages about them begin.
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

/// Arguments that can't be used, and why: one line.
public struct UsageError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What is wrong, and what to do.
  public var description: String

  public init(_ description: String) {
    self.description = description
  }
}

/// A text that isn't the value it should be.
public struct ValueError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What is wrong, with the text in it: "'7x' isn't a number".
  public var description: String

  public init(_ description: String) {
    self.description = description
  }
}
