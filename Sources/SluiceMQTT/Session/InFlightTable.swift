/// Messages at QoS 1 and 2 that have been sent and not been acknowledged, in the order in which they were sent.
///
/// Acknowledgements come in that order, from clients that keep to the standard, so that both ends of the table are what is used.
struct InFlightTable: Hashable, Sendable {
  struct Entry: Hashable, Sendable {
    /// 0 for records that were passed over behind others that are under way.
    var packetID: UInt16
    var subscription: UInt16
    var qos: MQTTQoS
    /// Whether it is a retained message.
    var isRetained: Bool
    /// Whether the subscription's cursor goes on behind it: not where it is a retained message, where a group counts it, or where its
    /// subscription has ended.
    var hasCursor: Bool
    var isSettled: Bool
    var place: MQTTPlace
  }

  private var entries: [Entry] = []
  /// Entries before this one are gone.
  private var head = 0
  /// Those that aren't settled.
  private(set) var count = 0

  /// Settled ones between others among them: the bound on what the table holds.
  var span: Int { entries.count - head }

  /// The oldest packet identifier in use; nil for none.
  var oldestID: UInt16? {
    for index in head..<entries.count where entries[index].packetID != 0 && !entries[index].isSettled {
      return entries[index].packetID
    }
    return nil
  }

  /// In the order in which they were sent.
  var unsettled: [Entry] { entries[head...].filter { !$0.isSettled } }

  /// What a session that comes back needs: the unsettled entries, and the settled ones behind them, from which the cursors go on.
  var kept: ArraySlice<Entry> {
    entries[head...].drop { $0.isSettled }
  }

  mutating func append(_ entry: Entry) {
    entries.append(entry)
    if !entry.isSettled { count += 1 }
  }

  /// Counts a record as settled once those before it are.
  mutating func pass(_ subscription: UInt16, _ place: MQTTPlace) {
    if span > 0, let last = entries.last, last.packetID == 0, last.subscription == subscription,
      last.place.topic == place.topic
    {
      entries[entries.count - 1].place = place
      return
    }
    entries.append(
      Entry(
        packetID: 0, subscription: subscription, qos: .atMostOnce, isRetained: false, hasCursor: true,
        isSettled: true, place: place))
  }

  /// Returns the message with that identifier, which is settled now; nil where there is none.
  mutating func settle(_ packetID: UInt16) -> Entry? {
    guard packetID != 0 else { return nil }
    for index in head..<entries.count where entries[index].packetID == packetID && !entries[index].isSettled {
      entries[index].isSettled = true
      count -= 1
      return entries[index]
    }
    return nil
  }

  /// Takes settled entries off the front, each by a call of `body`.
  mutating func takeSettled(_ body: (Entry) -> Void) {
    while head < entries.count, entries[head].isSettled {
      body(entries[head])
      head += 1
    }
    if head == entries.count {
      entries.removeAll(keepingCapacity: entries.capacity <= 64)
      head = 0
    } else if head >= 64, head * 2 >= entries.count {
      entries.removeFirst(head)
      head = 0
    }
  }

  /// The last place of each of a subscription's topics.
  func lastPlaces(of subscription: UInt16) -> [MQTTPlace] {
    var places: [MQTTPlace] = []
    for entry in entries[head...] where entry.subscription == subscription && entry.hasCursor {
      if let index = places.firstIndex(where: { $0.topic == entry.place.topic }) {
        places[index] = entry.place
      } else {
        places.append(entry.place)
      }
    }
    return places
  }

  /// The subscription has ended: its messages are completed, but no cursor counts them.
  mutating func detach(_ subscription: UInt16) {
    for index in head..<entries.count where entries[index].subscription == subscription {
      entries[index].hasCursor = false
    }
  }
}
