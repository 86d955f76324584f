import SluiceClient
import SluiceCommand

/// `sluice topic connect`
struct TopicConnectCommand: Command {
  let topic: String

  static let page = CommandPage(
    "sluice topic connect", summary: "ask a topic's producers for records", operands: [Operand("TOPIC")],
    details: [
      "For topics that were created with --connect manual. Stays in force until sluice topic disconnect."
    ],
    examples: [.init("All subscribers are in place: go.", "sluice topic connect race")])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    topic = try TopicOperand.read(arguments.operands[0])
  }

  func start(_ run: Run) {
    run.connect { client in
      client.connectTopic(topic) { result in run.report(result) { "" } }
    }
  }
}

/// `sluice topic disconnect`
struct TopicDisconnectCommand: Command {
  let topic: String

  static let page = CommandPage(
    "sluice topic disconnect", summary: "ask a topic's producers for no more records",
    operands: [Operand("TOPIC")], details: ["Its subscribers aren't told."],
    examples: [.init("A pause.", "sluice topic disconnect race")])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    topic = try TopicOperand.read(arguments.operands[0])
  }

  func start(_ run: Run) {
    run.connect { client in
      client.disconnectTopic(topic) { result in run.report(result) { "" } }
    }
  }
}
