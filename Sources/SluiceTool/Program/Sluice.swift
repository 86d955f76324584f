import Glibc
import SluiceCommand
import SluiceIO

/// `sluice`: finds the command, runs it on the main thread's loop, ends with the status that scripts expect.
@main
enum Sluice {
  // Not an asynchronous `main`: the runtime's own main loop waits with every signal unblocked, and the first Ctrl-C would
  // end the process in the middle of a record.
  static func main() {
    StandardStreams.reserve()
    ProcessSignals.block([.interrupt, .terminate])
    ProcessSignals.ignoreBrokenPipes()
    exit(run(Array(CommandLine.arguments.dropFirst())).rawValue)
  }

  private static func run(_ arguments: [String]) -> ExitCode {
    var name = "sluice"
    do throws(UsageError) {
      switch try CommandLineChoice.read(arguments, naming: &name) {
      case .print(let text):
        Descriptor.write(text, to: STDOUT_FILENO)
        return .success
      case .run(let command, let access):
        return try Run(access).perform(command)
      }
    } catch {
      Complaint.write(Complaint.usage(error, of: name), by: "sluice")
      return .usage
    }
  }
}

/// What a command line requests.
enum CommandLineChoice {
  /// Help or version.
  case print(String)
  case run(any Command, ClientAccess)

  /// Reads the program's arguments.
  ///
  /// - Parameter name: becomes the command whose help explains what is wrong, if something is.
  static func read(_ arguments: [String], naming name: inout String) throws(UsageError) -> CommandLineChoice {
    let program = Commands.page()
    let (head, rest) = try ArgumentParser(program).parseHead(arguments)
    if head.wantsHelp { return .print(HelpText.render(program)) }
    if head.has("version") { return .print(Version.line(of: "sluice")) }
    var left = rest[...]
    guard var word = left.popFirst() else {
      throw UsageError("what shall it do? It can \(program.commands.map(\.word).joined(separator: ", "))")
    }
    if word == "help" {
      guard let next = left.popFirst() else { return .print(HelpText.render(program)) }
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
    of group: any CommandGroup.Type, _ head: ParsedArguments, _ arguments: ArraySlice<String>,
    naming name: inout String
  ) throws(UsageError) -> CommandLineChoice {
    let shared = Commands.shared(by: group)
    let (groupHead, rest) = try ArgumentParser(group.page, shared: shared).parseHead(arguments)
    if groupHead.wantsHelp { return .print(HelpText.render(group.page, shared: shared)) }
    guard let word = rest.first else {
      throw UsageError(
        "\(name) what? It can be \(group.members.map { $0.page.word }.joined(separator: ", "))")
    }
    let kind = try Commands.find(word, in: group.members, of: name)
    name = kind.page.name
    return try choice(kind, [groupHead, head], rest.dropFirst(), needsBroker: group.needsBroker)
  }

  private static func choice(
    _ kind: any Command.Type, _ heads: [ParsedArguments], _ arguments: ArraySlice<String>, needsBroker: Bool
  ) throws(UsageError) -> CommandLineChoice {
    let shared = needsBroker ? Commands.shared : Commands.shared.suffix(1)
    let parsed = try ArgumentParser(kind.page, shared: shared).parse(arguments)
    if parsed.wantsHelp { return .print(HelpText.render(kind.page, shared: shared)) }
    let command = try kind.init(parsed)
    guard needsBroker else { return .run(command, try ClientAccess([])) }
    // Options stand before the environment, and those behind the command before those in front of it.
    return .run(command, try ClientAccess([parsed] + heads + [Commands.environment()]))
  }
}
