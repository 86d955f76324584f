import Glibc
import SluiceCommand
import SluiceIO

/// `sluiced`: reads its settings, runs the broker, ends with the status that scripts expect.
@main
enum Sluiced {
  // Not an asynchronous `main`: the runtime's own main loop waits with every signal unblocked, and the first SIGTERM would
  // end the process.
  static func main() {
    StandardStreams.reserve()
    ProcessSignals.block([.terminate, .interrupt, .hangUp, .user1])
    ProcessSignals.ignoreBrokenPipes()
    do {
      try run(CommandLine.arguments.dropFirst())
    } catch {
      Complaint.write(error.description, by: "sluiced")
      exit(ExitCode.usage.rawValue)
    }
    exit(ExitCode.success.rawValue)
  }

  private static func run(_ arguments: some Sequence<String>) throws(UsageError) {
    let page = DaemonPage.page()
    let settings: DaemonSettings
    do throws(UsageError) {
      let parsed = try ArgumentParser(page).parse(arguments, environment: Environment.value)
      if parsed.wantsHelp {
        Descriptor.write(HelpText.render(page), to: STDOUT_FILENO)
        return
      }
      if parsed.has("version") {
        Descriptor.write(Version.line(of: "sluiced"), to: STDOUT_FILENO)
        return
      }
      settings = try DaemonSettings(parsed)
    } catch {
      throw UsageError(Complaint.usage(error, of: "sluiced"))
    }
    let daemon = try Daemon(settings)
    daemon.warnAboutEnvironment(page)
    try daemon.run()
  }
}
