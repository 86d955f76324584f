import SluiceWire

/// What is left to do for a frame when the turn's workBudget is exhausted.
enum UnfinishedWork {
  /// A pattern's subscription, by its number, has topics to join.
  case join(number: UInt64, stream: UInt32)
  /// A pattern's subscription has topics to tell of its demand.
  case tellDemand(number: UInt64, stream: UInt32)
  /// Records of a group are still to be settled.
  case settle(Settle, Group)
}

// Work that takes longer than a connection's turn. It goes on in the next one, before more frames are taken up.
extension Connection {
  func goOnLater(_ work: UnfinishedWork) {
    unfinishedWork.append(work)
    context.makeReady(self)
  }

  /// A new turn of this connection: goes on with what was left, then with reading.
  func resumeWork() {
    workBudget.renew()
    // What isn't finished now queues up again.
    for _ in 0..<unfinishedWork.count where !workBudget.isExhausted {
      switch unfinishedWork.popFirst() {
      case .join(let number, let stream): joinTopics(for: number, on: stream)
      case .tellDemand(let number, let stream): tellDemand(of: number, on: stream)
      case .settle(let frame, let group): settle(frame, in: group)
      case nil: break
      }
    }
    if workBudget.isExhausted { return context.makeReady(self) }
    resumeReading()
  }

  /// Whether the broker has yet to do what the client has sent, and may read nothing more before.
  var isAtWork: Bool {
    waitsForAnswers || workBudget.isExhausted || !unread.isEmpty || !unfinishedWork.isEmpty
  }
}
