import Glibc
import SluiceCommand
import SluiceIO

/// `sluice`: finds the command, runs it on the main thread's loop, and ends with its exit code.
@main
enum Sluice {
  // Not an asynchronous `main`: the runtime's own main loop waits with every signal unblocked, and the first Ctrl-C would
  // end the process in the middle of a record.
  static func main() {
    StandardStreams.reserve()
    ProcessSignals.block([.interrupt, .terminate])
    ProcessSignals.ignoreBrokenPipes()
    exit(run(Argument.ofProcess).rawValue)
  }

  private static func run(_ arguments: [Argument]) -> ExitCode {
    var name = "sluice"
    do throws(UsageError) {
      switch try CommandLineChoice.read(arguments, naming: &name) {
      case .print(let text):
        return ProgramOutput.finish(text, by: "sluice")
      case .run(let command, let access):
        return try Run(access).perform(command)
      }
    } catch {
      Complaint.write(Complaint.usage(error, of: name), by: "sluice")
      return .usage
    }
  }
}

/// The action that a command line requests.
enum CommandLineChoice {
  /// Help or version.
  case print(String)
  case run(any Command, ClientAccess)

  /// Reads the program's arguments.
  ///
  /// - Parameter name: set to the command whose help explains the arguments, for messages about errors.
  static func read(_ arguments: [Argument], naming name: inout String) throws(UsageError) -> CommandLineChoice
  {
    let program = Commands.page()
    let (head, rest) = try ArgumentParser(program).parseHead(arguments)
    if head.wantsHelp { return .print(overview) }
    if head.has("version") { return .print(Version.line(of: "sluice")) }
    var left = rest[...]
    guard var word = left.popFirst()?.text else {
      throw UsageError(
        "no command is given; there are \(program.commands.map(\.word).joined(separator: ", "))")
    }
    if word == "help" {
      guard let next = left.popFirst()?.text else { return .print(overview) }
      if next == "connecting" { return .print(HelpText.render(Commands.connectingPage)) }
      word = next
      left.append("--help")
    }
    let kind = try Commands.find(word, in: Commands.all, of: "sluice")
    name = kind.page.name
    if let group = kind as? any CommandGroup.Type { return try member(of: group, head, left, naming: &name) }
    return try choice(kind, [head], left, needsBroker: kind.needsBroker)
  }

  /// The command that the next word names.
  private static func member(
    of group: any CommandGroup.Type, _ head: ParsedArguments, _ arguments: ArraySlice<Argument>,
    naming name: inout String
  ) throws(UsageError) -> CommandLineChoice {
    let shared = Commands.shared(by: group)
    let (groupHead, rest) = try ArgumentParser(group.page, shared: shared).parseHead(arguments)
    if groupHead.wantsHelp { return .print(help(group.page, shared, group.needsBroker)) }
    guard let word = rest.first?.text else {
      throw UsageError(
        "\(name) needs a command; there are \(group.members.map { $0.page.word }.joined(separator: ", "))")
    }
    let kind = try Commands.find(word, in: group.members, of: name)
    name = kind.page.name
    return try choice(kind, [groupHead, head], rest.dropFirst(), needsBroker: group.needsBroker)
  }

  private static func choice(
    _ kind: any Command.Type, _ heads: [ParsedArguments], _ arguments: ArraySlice<Argument>, needsBroker: Bool
  ) throws(UsageError) -> CommandLineChoice {
    let shared = needsBroker ? Commands.shared : Commands.shared.suffix(1)
    let parsed = try ArgumentParser(kind.page, shared: shared).parse(arguments)
    if parsed.wantsHelp { return .print(help(kind.page, shared, needsBroker)) }
    let command = try kind.init(parsed)
    guard needsBroker else { return .run(command, try ClientAccess([])) }
    return .run(command, try access([parsed] + heads))
  }

  /// The program's help, without the options that are explained elsewhere.
  private static var overview: String {
    var page = Commands.page()
    let names = Set(Commands.connecting.dropFirst().map(\.name))
    page.options.removeAll { names.contains($0.name) }
    return HelpText.render(page)
  }

  private static func help(_ page: CommandPage, _ shared: [CommandOption], _ needsBroker: Bool) -> String {
    HelpText.render(page, shared: shared, elsewhere: needsBroker ? Commands.elsewhere : nil)
  }

  /// Options after the command override those before it, these override the environment, and that overrides the context in use. A named context replaces the
  /// environment. The context in use counts only if no server is named, so that its credentials are sent to no other server.
  private static func access(_ given: [ParsedArguments]) throws(UsageError) -> ClientAccess {
    let environment = try Commands.environment()
    let hasServer = given.contains { $0.has("server") }
    if let name = (given + [environment]).lazy.compactMap({ $0.text("context") }).first {
      let isGiven = given.contains { $0.has("context") }
      guard !hasServer || !isGiven else {
        throw UsageError("--context and --server exclude each other; give one of them")
      }
      if !hasServer {
        return try ClientAccess(given + [ParsedArguments(try ContextFile.load().find(name), named: name)])
      }
    }
    guard !hasServer, !environment.has("server") else { return try ClientAccess(given + [environment]) }
    let file = try ContextFile.load()
    guard let name = file.current else { return try ClientAccess(given + [environment]) }
    return try ClientAccess(
      given + [environment, ParsedArguments(try file.find(name), named: name)], quiet: 2)
  }
}
