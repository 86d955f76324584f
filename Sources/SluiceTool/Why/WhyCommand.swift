import SluiceClient
import SluiceCommand
import SluiceWire

struct WhyCommand: Command {
  let topic: String
  let asJSON: Bool

  static let page = CommandPage(
    "sluice why", summary: "say which client limits which on a topic", operands: [Operand("TOPIC")],
    options: [
      CommandOption(
        "json", help: "Print an object with the sentences, and what \"topic show --json\" prints.")
    ],
    details: """
      The first sentence says what the producers wait for, if they do: a subscriber whose demand is used up, the disk, the memory, the identity's rate, or a subscriber that \
      isn't there. The others say what each producer may publish, and what each subscriber has taken, has asked for, and is owed; those that hold up producers \
      come first, and those that are furthest behind next. Of one that is behind they say since when, and whether the client doesn't ask, doesn't read what it was sent, or isn't \
      reached by its network. The last ones tell of the groups and durable cursors that are behind, and whether any client uses them.
      """,
    examples: [
      "What does the producer wait for?": "sluice why orders.eu",
      "The same, every two seconds.": "watch -n2 sluice why orders.eu",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    topic = try TopicOperand.read(arguments.operands[0])
    asJSON = arguments.has("json")
  }

  func start(_ run: Run) {
    run.connect { client in
      client.topicInfo(topic) { result in
        run.report(result, of: topic, client, text)
      }
    }
  }

  private func text(_ info: TopicInfo) -> String {
    let sentences = TopicExplanation(info).sentences
    guard asJSON else { return sentences.map { ShownText.line($0) + "\n" }.joined() }
    return TopicJSON.line(info, ["why": .array(sentences.map { .text($0) })])
  }
}
