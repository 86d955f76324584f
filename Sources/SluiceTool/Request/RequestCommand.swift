import Glibc
import SluiceClient
import SluiceCommand

/// `sluice request`
struct RequestCommand: Command {
  let topic: String
  /// Nil for standard input.
  let text: String?
  let timeout: Duration
  let key: String?
  let headers: [Message.Header]

  static let page = CommandPage(
    "sluice request", summary: "publish a request and print the reply",
    operands: [Operand("TOPIC"), Operand("MESSAGE", .optional)],
    options: [
      CommandOption("timeout", value: "TIME", help: "How long to wait for the reply.", standard: "5s"),
      CommandOption("key", value: "KEY", help: "Publish the request with this key."),
      CommandOption(
        "header", value: "NAME=VALUE", help: "Publish the request with this header.", isRepeatable: true),
    ],
    details: [
      """
      Without a MESSAGE, the whole of standard input is the request. Prints the payload of the first reply as it is, and ends \
      with 0; with 1 when none comes in time, or when the one who replies says that there is no answer.
      """,
      """
      A request is a record with the headers reply-to, a topic for the reply, and correlation-id; the reply is a record in \
      that topic with the same correlation-id.
      """,
    ],
    examples: [
      .init("Ask, wherever somebody runs sluice reply.", "sluice request prices.quote ACME"),
      .init(
        "Send a file to be worked on.", "sluice request images.shrink --timeout 1m < big.png > small.png"),
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    topic = try TopicOperand.read(arguments.operands[0])
    text = arguments.operands.count > 1 ? arguments.operands[1] : nil
    timeout = try arguments.value("timeout", TimeSpan.parse) ?? .seconds(5)
    key = arguments.text("key")
    headers = try arguments.values("header", HeaderText.parse)
  }

  func start(_ run: Run) {
    // There is nothing else to do meanwhile.
    guard let payload = text.map({ Array($0.utf8) }) ?? Self.standardInput() else {
      return run.finish(.failure, unsafe "cannot read standard input: \(String(cString: strerror(errno)))")
    }
    let message = Message(payload, key: key.map { Array($0.utf8) }, headers: headers)
    run.connect { client in
      client.request(topic, message, timeout: timeout) { result in
        switch result {
        case .success(let reply):
          let code = unsafe reply.withUnsafeBytes { unsafe Descriptor.writeAll($0, to: STDOUT_FILENO) }
          guard code == 0 || code == EPIPE else {
            return run.finish(
              .failure, unsafe "cannot write to standard output: \(String(cString: strerror(code)))")
          }
          run.finish(.success)
        case .failure(let error): run.fail(error)
        }
      }
    }
  }

  /// Nil, with `errno`, when it can't be read.
  private static func standardInput() -> [UInt8]? {
    var all: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    while true {
      let count = unsafe read(STDIN_FILENO, &buffer, buffer.count)
      if count == 0 { return all }
      if count > 0 { all += buffer[..<count] } else if errno != EINTR { return nil }
    }
  }
}
