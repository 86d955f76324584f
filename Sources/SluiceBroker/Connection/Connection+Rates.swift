import SluiceIO
import SluiceSession
import SluiceWire

// What an identity may publish and be sent in a second.
extension Connection {
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
  func wakeForRate(after delay: Duration) {
    guard !isRateTimerSet else { return }
    isRateTimerSet = true
    reference.schedule(after: delay) { connection in
      connection.isRateTimerSet = false
      for number in connection.session.numbers {
        connection.object(PublicationStream.self, on: number)?.rateAllowsMore()
      }
      connection.context.makeReady(connection)
    }
  }
}
