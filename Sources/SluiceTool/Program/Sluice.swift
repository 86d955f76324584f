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
