import SluiceAccess
import SluiceIO
import SluiceSession
import SluiceTopics
import SluiceWire

/// The demand of a producer: as much as the topic can accept, and as the identity's rate allows.
extension PublicationStream {
  /// Grants as much as the topic can accept now, within the identity's rate.
  func grantMore(on streams: StreamMultiplexer) -> Demand? {
    guard let credit = streams.session.creditToGrant(stream) else { return nil }
    var left = credit.held
    if heldUpSince == nil, !topic.mayGrant(to: left) { return nil }
    let more = grant(holding: left, on: streams)
    left.add(more)
    var demand: Demand?
    if more != PublishAllowance() {
      demand = streams.session.grant(more, to: stream)
      loopState.traffic.granted(more.records)
    }
    if left.records > 0, left.bytes > 0 {
      if heldUpSince != nil {
        loopState.traffic.heldUp(since: heldUpSince.take(), until: streams.loop.now)
      }
    } else {
      if topic.isOutOfMemory { streams.core.metrics.add(.memoryHolds) }
      heldUpSince = heldUpSince ?? streams.loop.now
    }
    return demand
  }

  /// Takes the amount to grant from the topic and from the identity's rate.
  private func grant(holding held: PublishAllowance, on streams: StreamMultiplexer) -> PublishAllowance {
    let now = streams.loop.now
    guard let limiter = streams.client.account?.publishing else { return topic.grant(to: held, now: now) }
    let wanted = PublishingBudget.share(to: held, window: topic.grantWindow)
    guard let most = limiter.take(wanted, at: now) else {
      if held.records == 0 || held.bytes == 0 {
        streams.core.metrics.add(.publishRateHolds)
        waitsForRate = true
        topic.noteStopped(now: now)
        streams.wakeForRate(after: limiter.wait(at: now))
      }
      return PublishAllowance()
    }
    let more = topic.grant(to: held, atMost: most, now: now)
    var rest = most
    rest.subtract(more)
    limiter.giveBack(rest)
    return more
  }

  /// Resumes a publication that was blocked by its identity's rate.
  func rateAllowsMore() {
    guard waitsForRate else { return }
    waitsForRate = false
    makeDue(on: streams)
  }
}
