import SluiceTopics
import SluiceWire
import Testing

@Suite struct TopicInspectionTests {
  private func subscriptions(name: String) -> [TopicInfo.Subscription] {
    (0..<200).map {
      TopicInfo.Subscription(
        connection: $0, client: name, stream: 1, state: .live, nextOffset: 0, granted: 0, sent: 0,
        consumer: name)
    }
  }

  @Test func aHundredSubscriptionsAreListed() {
    let fitting = TopicInspection.fitting(subscriptions(name: "worker-1"))
    #expect(fitting.map(\.connection) == Array(0..<100))
  }

  @Test func withTheLongestNamesTheyFitTheSmallestFrame() {
    let name = String(repeating: "n", count: 255)
    let info = TopicInfo(
      summary: TopicSummary(
        topic: name, epoch: 0, firstOffset: 0, nextOffset: 0, bytes: 0,
        ending: .failure(code: .producerFailure, message: name), subscriptions: 0, publications: 0),
      settings: TopicSettings(), subscriptions: TopicInspection.fitting(subscriptions(name: name)),
      publications: Array(
        repeating: TopicInfo.Publication(connection: 0, client: name, stream: 0, granted: 0, received: 0),
        count: 100))
    #expect(info.subscriptions.count > 50)
    #expect(info.encoded(stream: 1).count - FrameHeader.size <= Limits.smallestFrame)
  }
}
