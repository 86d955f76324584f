import Glibc
import ReactiveCore
import SluiceClient
import SluiceCommand
import SluiceIO
import SluiceWire

struct RequestCommand: Command {
  let topic: String
  /// Nil for standard input.
  let payload: [UInt8]?
  let timeout: Duration
  let isRaw: Bool
  let key: [UInt8]?
  let headers: [Message.Header]

  static let page = CommandPage(
    "sluice request", summary: "publish a request and print the reply",
    operands: [Operand("TOPIC"), Operand("MESSAGE", .optional, takesBytes: true)],
    options: [
      CommandOption("timeout", value: "TIME", help: "How long to wait for the reply.", standard: "5s"),
      CommandOption("key", value: "KEY", help: "Publish the request with this key.", takesBytes: true),
      CommandOption(
        "header", value: "NAME=VALUE", help: "Publish the request with this header.", isRepeatable: true,
        takesBytes: true),
      CommandOption("raw", help: "Print the reply without escapes, even on a terminal."),
    ],
    details: """
      Without MESSAGE, all of standard input is the request. Prints the payload of the first reply, on a terminal with escapes for control characters, and ends \
      with 0. Ends with 1 if no reply comes in time, or if the replier returns an error.

      A request is a record with the headers reply-to, a topic for the reply, and correlation-id; the reply is a record in \
      that topic with the same correlation-id. HTTP clients use POST /topics/TOPIC/request.
      """,
    examples: [
      "Ask a service that runs sluice reply, on any machine.": "sluice request prices.quote ACME",
      "Send a file, and save the reply.": "sluice request images.shrink --timeout 1m < big.png > small.png",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    topic = try TopicOperand.read(arguments.operands[0])
    payload = arguments.operandArguments.dropFirst().first?.bytes
    timeout = try arguments.value("timeout", TimeSpan.parse) ?? .seconds(5)
    isRaw = arguments.has("raw")
    key = arguments.bytes("key")
    headers = try arguments.values("header", bytes: HeaderText.parse)
  }

  func start(_ run: Run) {
    // Blocks the loop, which has no other work meanwhile.
    let payload: [UInt8]
    do throws(FileBytes.Failure) {
      if let given = self.payload { payload = given } else { payload = try FileBytes.read(STDIN_FILENO) }
    } catch {
      return run.finish(.failure, error.message(of: "standard input"))
    }
    let message = Message(payload, key: key, headers: headers)
    run.connect { client in
      client.request(topic, message, timeout: timeout) { result in
        switch result {
        case .success(let reply):
          guard ProgramOutput.isTerminal, !isRaw else {
            let failure = unsafe reply.withUnsafeBytes { unsafe ProgramOutput.write(exactly: $0) }
            if run.goesOn(after: failure) { run.finish(.success) }
            return
          }
          let text = unsafe reply.withUnsafeBytes { unsafe ShownText.escaped(bytes: $0, in: .lines) }
          // Ends with a line break, so that the shell's prompt begins a line.
          run.print(text.hasSuffix("\n") ? text : text + "\n")
        case .failure(let error): run.fail(error)
        }
      }
    }
  }
}

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
        "exec", value: "COMMAND",
        help: "The command to run for each request, with its payload on standard input."),
      CommandOption("concurrent", value: "N", help: "Requests handled at the same time.", standard: "1"),
      CommandOption(
        "quiet", letter: "q", help: "Print nothing about requests and the connection."),
    ] + Persistence.options,
    details: """
      Replies to new requests on TOPIC with the standard output of COMMAND. The environment of COMMAND has SLUICE_TOPIC, SLUICE_OFFSET, SLUICE_TIME and, if the \
      request has a key, SLUICE_KEY and SLUICE_KEY_BASE64, as with sluice sub --exec. If COMMAND ends with another code than 0, the requester gets an error, and \
      the next request follows.

      \(Persistence.details)
      """,
    examples: [
      "Run a service in one line.": "sluice reply time.utc --exec 'date -u'",
      "Send it a request.": "sluice request time.utc ''",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    topic = try TopicOperand.read(arguments.operands[0])
    guard let shell = arguments.text("exec") else {
      throw UsageError("--exec is missing; name the command that writes the replies")
    }
    self.shell = shell
    concurrent = Int(try arguments.value("concurrent", Values.count(in: 1...10_000)) ?? 1)
    persistence = try Persistence(arguments)
  }

  func start(_ run: Run) {
    run.connect(persistence) { client in
      // Retained by the closure that cancels it.
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
          case .failed(let text), .command(let text, _): message = text
          case .closedPipe: throw failure
          }
          if !persistence.isQuiet { run.note(message) }
          throw TopicFailure(message: message)
        }
      }
      run.interrupted = {
        service?.cancel()
        service = nil
        run.finish(.interrupted)
      }
    }
  }

  private static func answer(_ shell: String, _ request: TopicRecord) async -> Result<[UInt8], SinkFailure> {
    await withCheckedContinuation { continuation in
      // On a thread of its own, because a command may take any time.
      Threads.start { continuation.resume(returning: ShellCommand(shell, request).answer()) }
    }
  }
}
