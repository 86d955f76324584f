import Testing

@testable import SluiceDoors

@Suite("The look at an MQTT client's silence")
struct MQTTSilenceTests {
  private var silence = MQTTSilence()

  @Test mutating func beforeConnectTheTimerIsSetOnce() {
    #expect(silence.needsLook(isTimerSet: false))
    #expect(silence.next(100, isOpen: false, isTimerSet: false) == 100)
    #expect(silence.needsLook(isTimerSet: true))
    #expect(silence.next(100, isOpen: false, isTimerSet: true) == nil)
  }

  @Test mutating func connectMayBringANearerTime() {
    #expect(silence.next(100, isOpen: false, isTimerSet: false) == 100)
    #expect(silence.next(60, isOpen: true, isTimerSet: true) == 60)
    #expect(!silence.needsLook(isTimerSet: true))
  }

  @Test mutating func aLaterTimeIsLookedForWhenTheTimerHasCome() {
    #expect(silence.next(100, isOpen: false, isTimerSet: false) == 100)
    #expect(silence.next(200, isOpen: true, isTimerSet: true) == nil)
    #expect(silence.timerCame(isRead: true, isLimited: true, now: 100) == .tell)
    #expect(silence.needsLook(isTimerSet: false))
    #expect(silence.next(200, isOpen: true, isTimerSet: false) == 200)
  }

  @Test mutating func aClientWithoutKeepAliveIsAskedForOnce() {
    #expect(silence.next(100, isOpen: false, isTimerSet: false) == 100)
    #expect(silence.next(nil, isOpen: true, isTimerSet: true) == nil)
    #expect(!silence.needsLook(isTimerSet: true))
    // The timer for CONNECT has fired, and isn't set again.
    #expect(silence.timerCame(isRead: true, isLimited: false, now: 100) == .tell)
    #expect(!silence.needsLook(isTimerSet: false))
  }

  @Test mutating func aClientThatIsntReadIsLeftAlone() {
    #expect(silence.next(100, isOpen: true, isTimerSet: false) == 100)
    #expect(silence.timerCame(isRead: false, isLimited: true, now: 100) == .wait(100 + MQTTSilence.patience))
    #expect(silence.timerCame(isRead: true, isLimited: true, now: 100 + MQTTSilence.patience) == .lookAnew)
    #expect(silence.next(300, isOpen: true, isTimerSet: false) == 300)
    #expect(silence.timerCame(isRead: true, isLimited: true, now: 300) == .tell)
  }

  @Test func aConnectionThatWasPackedHasItsTimer() {
    let silence = MQTTSilence(isAgreed: true)
    #expect(!silence.needsLook(isTimerSet: true))
    #expect(silence.needsLook(isTimerSet: false))
  }
}
