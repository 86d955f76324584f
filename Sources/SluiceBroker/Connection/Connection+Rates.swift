import SluiceIO
import SluiceWire

// What an identity may publish and be sent in a second.
extension Connection {
  /// Grants what the topic can take now, as far as the identity's rate allows; what is granted is taken of that.
  func grant(_ publication: Publication, holding held: GrantLedger.Allowance) -> GrantLedger.Allowance {
    let topic = publication.topic
    let now = context.loop.now
    guard let limiter = account?.publishing else { return topic.grant(to: held, now: now) }
    let wanted = GrantLedger.share(to: held, window: topic.grantWindow)
    guard let most = limiter.take(wanted, at: now) else {
      if held.records == 0 || held.bytes == 0 {
        context.core.metrics.add(.publishRateHolds)
        publication.waitsForRate = true
        topic.noteStopped(now: now)
        wakeForRate(after: limiter.wait(at: now))
      }
      return GrantLedger.Allowance()
    }
    let more = topic.grant(to: held, atMost: most, now: now)
    var rest = most
    rest.subtract(more)
    limiter.giveBack(rest)
    return more
  }

  /// A batch took more bytes than were granted, as its last record may.
  func exceeded(by bytes: UInt64) {
    account?.publishing?.spend(records: 0, bytes: bytes)
  }

  /// A publication is over, with something left of what it was granted.
  func giveBack(_ publication: Publication) {
    account?.publishing?.giveBack(publication.owed)
  }

  /// How many bytes of records may be sent now, at most `most`; 0 for none before some later time, at which this connection has its turn.
  func deliveryRoom(atMost most: Int) -> Int {
    guard let limiter = account?.delivering else { return most }
    let now = context.loop.now
    let room = limiter.room(at: now)
    if room == 0 {
      context.core.metrics.add(.deliveryRateHolds)
      wakeForRate(after: limiter.wait(at: now))
    }
    return min(room, most)
  }

  /// Comes back to what waits for the identity's rate.
  private func wakeForRate(after delay: Duration) {
    guard !isRateTimerSet else { return }
    isRateTimerSet = true
    reference.schedule(after: delay) { connection in
      connection.isRateTimerSet = false
      for stream in connection.streams {
        guard case .publication(let publication) = connection.handle(stream), publication.waitsForRate else {
          continue
        }
        publication.waitsForRate = false
        connection.makeDue(publication)
      }
      connection.context.makeReady(connection)
    }
  }
}
