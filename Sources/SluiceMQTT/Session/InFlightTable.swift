/// Messages at QoS 1 and 2 that have been sent and not acknowledged, in the order in which they were sent.
///
/// Clients that conform to the standard acknowledge in that order, so usually only the two ends of the table are accessed.
struct InFlightTable: Hashable, Sendable {
  struct Entry: Hashable, Sendable {
    /// 0 for records that were skipped after others that are in flight.
    var packetID: UInt16
    var subscription: UInt16
    var qos: MQTTQoS
    /// Whether it is a retained message.
    var isRetained: Bool
    /// Whether the subscription's cursor moves past it. False for a retained message, for a record that a group counts, and after the subscription has ended.
    var hasCursor: Bool
    var isSettled: Bool
    var place: MQTTPlace
  }

  private var entries: [Entry] = []
  /// Entries before this one were removed.
  private var head = 0
  /// The number of unsettled entries.
  private(set) var count = 0

  /// The number of entries, including settled ones between unsettled ones: the size to which the table is limited.
  var span: Int { entries.count - head }

  /// The oldest packet identifier in use; nil for none.
  var oldestID: UInt16? {
    for index in head..<entries.count where entries[index].packetID != 0 && !entries[index].isSettled {
      return entries[index].packetID
    }
    return nil
  }

  /// The unsettled entries, in the order in which they were sent.
  var unsettled: [Entry] { entries[head...].filter { !$0.isSettled } }

  /// The entries that a resumed session needs: from the first unsettled one on, including settled ones, from which the cursors continue.
  var kept: ArraySlice<Entry> {
    entries[head...].drop { $0.isSettled }
  }

  mutating func append(_ entry: Entry) {
    entries.append(entry)
    if !entry.isSettled { count += 1 }
  }

  /// Counts a record as settled once the earlier ones are.
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

  /// Settles the message with that identifier, and returns it; nil if there is none.
  mutating func settle(_ packetID: UInt16) -> Entry? {
    guard packetID != 0 else { return nil }
    for index in head..<entries.count where entries[index].packetID == packetID && !entries[index].isSettled {
      entries[index].isSettled = true
      count -= 1
      return entries[index]
    }
    return nil
  }

  /// Removes settled entries from the front, and passes each to `body`.
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

  /// Detaches a subscription that has ended: its messages are completed, but no cursor counts them.
  mutating func detach(_ subscription: UInt16) {
    for index in head..<entries.count where entries[index].subscription == subscription {
      entries[index].hasCursor = false
    }
  }
}
