import SluiceMQTT

/// An action of the session that may call the session back, and is therefore queued.
enum MQTTLater {
  case connect(MQTTConnect)
  case subscribe(MQTTSubscriptionRequest)
  case fetch(UInt16, MQTTPlace)
  /// The previous message that was read again has been processed.
  case fetchNext(UInt16, MQTTPlace)
  case sendRetained(UInt16)
  case failed([MQTTToken], MQTTError)
  case done([MQTTToken])
  /// The retained copies of messages are stored, or can't be.
  case copied([UInt16])
  case publicationEnded(UInt16)
  case end(MQTTDeparture?, MQTTReason, String)
}

extension MQTTLater {
  /// Makes the session release the number of a publication that has ended.
  static func publicationEnded(_ publication: MQTTPublication) -> Self {
    if case .topic(let number) = publication.role, !publication.isClosing { return .publicationEnded(number) }
    return .done([])
  }
}

/// Actions that run after the session's current call, in order, including those added meanwhile.
struct MQTTLaterQueue {
  private var items: [MQTTLater] = []
  private var place = 0
  private var isRunning = false

  var isEmpty: Bool { items.isEmpty }

  mutating func append(_ item: MQTTLater) { items.append(item) }

  /// Returns whether there are actions and no caller runs them already.
  mutating func begin() -> Bool {
    guard !isRunning, !items.isEmpty else { return false }
    isRunning = true
    return true
  }

  /// The next action for the caller that has begun; nil once there are no more.
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
