import SluiceWire
import TestSupport
import Testing

@testable import SluiceMQTT

@Suite("MQTT subscriptions of a session")
struct SubscriptionIndexTests {
  @Test(
    "are found by their filters, and get the lowest free number, however many there are",
    arguments: [3, 16, 17, 60])
  func model(most: Int) throws {
    var random = SeededRandom.printed()
    let filters = (0..<most).map { "a/\($0)" } + ["\u{e9}", "e\u{301}", "$share/g/a/1", "$share/h/a/1"]
    var state = MQTTSessionState()
    var (found, missing) = (0, 0)
    for _ in 0..<2000 {
      let filter = try MQTTTopicFilter(filters.randomElement(using: &random)!)
      let options = try MQTTSubscriptionOptions([0, 1, 2, 5].randomElement(using: &random)!, .v5)
      let number = state.number(of: filter.description).map { Int($0) }
      if number == nil { missing += 1 } else { found += 1 }
      if let number, Bool.random(using: &random) {
        state.set(number, nil)
      } else {
        state.set(
          number ?? state.lowestFreeNumber(),
          MQTTSessionState.Subscription(
            filter: filter, options: options, identifier: 0, start: .new))
      }
      let table = state.subscriptions
      for filter in filters {
        let expected = table.firstIndex { $0?.filter.description.utf8.elementsEqual(filter.utf8) ?? false }
        #expect(state.number(of: filter).map { Int($0) } == expected, "\(filter)")
      }
      #expect(state.lowestFreeNumber() == table.firstIndex { $0 == nil } ?? table.count)
      #expect(state.noLocalCount == table.count { $0?.options.noLocal ?? false })
      #expect(state.acknowledgedCount == table.count { ($0?.options.qos ?? .atMostOnce) > .atMostOnce })
    }
    #expect(found > 100 && missing > 100)
  }
}
