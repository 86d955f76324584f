import Glibc
import SluiceCommand
import SluiceIO

/// `sluiced`: reads its settings, runs the broker, and exits with the status that scripts expect.
@main
enum Sluiced {
  // Not an asynchronous `main`: the runtime's main loop waits with all signals unblocked, so the first SIGTERM would end the process.
  static func main() {
    StandardStreams.reserve()
    ProcessSignals.block([.terminate, .interrupt, .hangUp, .user1])
    ProcessSignals.ignoreBrokenPipes()
    do {
      end(try run(Argument.ofProcess))
    } catch {
      // After the log lines.
      for line in error.lines { LogOutput.standardError.write(Complaint.line(line, by: "sluiced")) }
      end(.usage)
    }
  }

  private static func end(_ code: ExitCode) -> Never {
    LogOutput.standardError.flush()
    exit(code.rawValue)
  }

  private static func run(_ arguments: [Argument]) throws(ConfigurationMistakes) -> ExitCode {
    let page = DaemonPage.page()
    let parsed: ParsedArguments
    let text: String?
    do {
      parsed = try ArgumentParser(page).parse(arguments, environment: Environment.value)
      text = try wantedText(parsed, page)
      // SLUICED_CONFIG in the environment is for starting the broker, so it doesn't conflict with --check-config.
      if parsed.origin(of: "config") == nil { try parsed.allowOne(of: "config", "check-config") }
    } catch {
      throw ConfigurationMistakes(lines: [Complaint.usage(error, of: "sluiced")])
    }
    if let text { return ProgramOutput.finish(text, by: "sluiced") }
    if let path = parsed.text("check-config") {
      try Startup.check(SettingsSource(arguments: parsed, path: path))
      return ProgramOutput.finish("\(path): nothing is wrong\n", by: "sluiced")
    }
    let source = SettingsSource(arguments: parsed, path: parsed.text("config"))
    let settings = try source.settings()
    do {
      try Daemon(settings, from: source).run()
    } catch {
      throw ConfigurationMistakes(lines: [error.description])
    }
    return .success
  }

  /// The text to print, for arguments that request only that.
  private static func wantedText(_ parsed: ParsedArguments, _ page: CommandPage) throws(UsageError) -> String?
  {
    if parsed.wantsHelp { return HelpText.render(page) }
    if parsed.has("version") { return Version.line(of: "sluiced") }
    if let manual = try parsed.value("manual", Values.choice(ManualChoice.self)) { return manual.text }
    return try parsed.value("completions", Values.choice(CompletionScript.Shell.self)).map {
      CompletionScript.render(page, for: $0)
    }
  }
}
