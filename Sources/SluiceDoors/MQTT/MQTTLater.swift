import SluiceMQTT

/// What an action of the session has asked for that may call the session back.
enum MQTTLater {
  case connect(MQTTConnect)
  case subscribe(MQTTSubscriptionRequest)
  case fetch(UInt16, MQTTPlace)
  /// The message that was read again before this one has been dealt with.
  case fetchNext(UInt16, MQTTPlace)
  case sendRetained(UInt16)
  case failed([MQTTToken], MQTTError)
  case done([MQTTToken])
  /// The retained copies of messages are kept, or can't be.
  case copied([UInt16])
  case publicationEnded(UInt16)
  case end(MQTTDeparture?, MQTTReason, String)
}

extension MQTTLater {
  /// The session forgets the number of a publication that has ended.
  static func publicationEnded(_ publication: MQTTPublication) -> Self {
    if case .topic(let number) = publication.role, !publication.isClosing { return .publicationEnded(number) }
    return .done([])
  }
}

/// What is done behind the session's present call, in order: also what is asked for meanwhile.
struct MQTTLaterQueue {
  private var items: [MQTTLater] = []
  private var place = 0
  private var isRunning = false

  var isEmpty: Bool { items.isEmpty }

  mutating func append(_ item: MQTTLater) { items.append(item) }

  /// Returns whether there is something to do, and no caller that does it already.
  mutating func begin() -> Bool {
    guard !isRunning, !items.isEmpty else { return false }
    isRunning = true
    return true
  }

  /// The next item for the caller that has begun; nil when all is done.
  mutating func next() -> MQTTLater? {
    guard place < items.count else {
      items.removeAllKeepingUseful()
      (place, isRunning) = (0, false)
      return nil
    }
    defer { place += 1 }
    return items[place]
  }
}
