import SluiceClient
import SluiceCommand
import SluiceWire

struct WhyCommand: Command {
  let topic: String
  let asJSON: Bool

  static let page = CommandPage(
    "sluice why", summary: "explain what blocks producers and delays subscribers",
    operands: [Operand("TOPIC")],
    options: [
      CommandOption(
        "json", help: "Print the object of topic show --json, with the sentences in its member why.")
    ],
    details: """
      The first sentence names what blocks the producers: a subscriber without demand, the disk, the memory, the rate of their identity, or the lack of a \
      subscriber. Then comes a sentence for each producer, with how much it may publish, and one for each subscriber, with its demand and its backlog. \
      Subscribers that block producers come first, then those with the largest backlog. For a backlog the sentence says how old it is, and whether the client \
      hasn't requested it, doesn't read, or has a slow network. The last sentences name groups and durable cursors with a backlog, and whether a client uses them.
      """,
    examples: [
      "What blocks the producer?": "sluice why orders.eu",
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
