import SluiceWire

/// What is left to do for a frame when the turn's workBudget is exhausted.
enum UnfinishedWork {
  /// A pattern's subscription has topics to join.
  case join(PatternSubscription)
  /// A pattern's subscription has topics to tell of its demand.
  case tellDemand(PatternSubscription)
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
      case .join(let pattern): joinTopics(of: pattern)
      case .tellDemand(let pattern): tellDemand(of: pattern)
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

  /// Settles as many records as the turn's work budget lasts for; the rest is for the next turn.
  func settle(_ frame: Settle, in group: Group) {
    let (looked, rest) = group.settle(frame, atMost: workBudget.left(.groupRecords), on: context)
    workBudget.spend(looked, of: .groupRecords)
    if let rest { goOnLater(.settle(rest, group)) }
  }
}
