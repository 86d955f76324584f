import ReactiveCore
import SluiceClient
import SluiceCommand

/// `sluice reply`
struct ReplyCommand: Command {
  let topic: String
  let shell: String
  let concurrent: Int
  let persistence: Persistence

  static let page = CommandPage(
    "sluice reply", summary: "reply to requests with what a command prints",
    operands: [Operand("TOPIC")],
    options: [
      CommandOption(
        "exec", value: "COMMAND", help: "Run for each request, with its payload on standard input."),
      CommandOption("concurrent", value: "N", help: "Requests that are worked on at a time.", standard: "1"),
      CommandOption("quiet", help: "Leave out what there is to say about requests and the connection."),
    ] + Persistence.options,
    details: [
      """
      Replies to requests that are published to TOPIC from now on with what COMMAND writes to its standard output. The command finds \
      SLUICE_TOPIC, SLUICE_OFFSET, SLUICE_TIME and, if the request has a key, SLUICE_KEY in its environment. When it ends with \
      another code than 0, whoever has asked is told that there is no answer, and the next request is taken.
      """,
      Persistence.details,
    ],
    examples: [
      .init("A service in one line.", "sluice reply time.utc --exec 'date -u'"),
      .init("Ask it.", "sluice request time.utc ''"),
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    topic = try TopicOperand.read(arguments.operands[0])
    guard let shell = arguments.text("exec") else {
      throw UsageError("--exec COMMAND says what makes the replies")
    }
    self.shell = shell
    concurrent = Int(try arguments.value("concurrent", Values.count(in: 1...10_000)) ?? 1)
    persistence = try Persistence(arguments)
  }

  func start(_ run: Run) {
    run.connect(persistence) { client in
      // Kept by the closure that ends it.
      var service: AnyCancellable?
      service = client.respond(to: topic, concurrent: concurrent) { completion in
        switch completion {
        case .finished: run.finish(.success)
        case .failure(let error): run.fail(error)
        }
      } with: { [shell, persistence] request in
        switch await Self.answer(shell, request) {
        case .success(let output): return Message(output)
        case .failure(let failure):
          let message: String
          switch failure {
          case .failed(let text), .refused(let text): message = text
          case .closedPipe: throw failure
          }
          if !persistence.isQuiet { run.note(message) }
          throw Refusal(description: message)
        }
      }
      run.interrupted = {
        service?.cancel()
        service = nil
        run.finish(.interrupted)
      }
    }
  }

  /// What whoever has asked is told.
  private struct Refusal: Error, CustomStringConvertible {
    let description: String
  }

  private static func answer(_ shell: String, _ request: TopicRecord) async -> Result<[UInt8], SinkFailure> {
    await withCheckedContinuation { continuation in
      // A thread of its own: a command may take as long as it likes.
      Threads.start { continuation.resume(returning: ShellCommand(shell, request).answer()) }
    }
  }
}
