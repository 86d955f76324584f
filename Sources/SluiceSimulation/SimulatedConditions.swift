import SluiceIO

/// How the loops and connections of a simulated world behave when nothing is wrong with them.
///
/// Changes apply to what happens from then on.
public struct SimulatedConditions: Sendable {
  /// How long bytes, and reports of free room, are on their way.
  public var latency: ClosedRange<Duration> = .microseconds(20) ... .milliseconds(2)
  /// How fast a direction of a connection is; nil: as fast as can be.
  public var bytesPerSecond: Int?
  /// The most bytes that one direction holds: written and not yet read.
  public var bufferSize = 65_536
  /// How long after an event a loop's turn begins.
  public var wakeDelay: ClosedRange<Duration> = .zero ... .microseconds(50)
  /// The most by which a timer comes late.
  public var timerLateness: Duration = .microseconds(500)
  /// How long it takes, once the way is clear again, to send again what was lost.
  public var retransmission: ClosedRange<Duration> = .milliseconds(1) ... .milliseconds(300)

  /// One in so many events of a stream is handed out a turn later than it could be; 0: none. So are the others below.
  public var lateEventOneIn = 8
  /// For writes: one in so many takes only part of the bytes that would fit.
  public var shortWriteOneIn = 8
  /// For reads: one in so many returns only part of the available bytes.
  public var partialReadOneIn = 4
  /// Of writes, one in so many travels in two pieces.
  public var splitOneIn = 4
  /// Of connection attempts, one in so many is refused though there is a listener.
  public var refusedOneIn = 0
  /// Whether a stream that is closed with unread bytes resets the connection, as the sockets of many other programs do, so
  /// that its last words are lost.
  public var resetsWhenClosedUnread = false
  /// Whether a connection frees its buffers when they are empty, for tests that compare the heap with what a program keeps.
  public var freesBuffers = false

  public init() {}

  /// Nothing by chance but the order of what happens at the same time.
  public static var calm: Self {
    var conditions = Self()
    conditions.latency = .microseconds(100) ... .microseconds(100)
    conditions.wakeDelay = .zero ... .zero
    conditions.timerLateness = .zero
    conditions.retransmission = .milliseconds(10) ... .milliseconds(10)
    conditions.lateEventOneIn = 0
    conditions.shortWriteOneIn = 0
    conditions.partialReadOneIn = 0
    conditions.splitOneIn = 0
    return conditions
  }
}

/// Random faults, at seeded times. Nothing, unless set.
public struct SimulatedFaults: Sendable {
  /// The mean time between cuts of one connection. See `SimulatedConnection.cut()`.
  public var cutEvery: Duration?
  /// How long such a cut lasts.
  public var cutLength: ClosedRange<Duration> = .milliseconds(10) ... .seconds(3)
  /// The mean time until a connection is reset.
  public var resetEvery: Duration?
  /// The mean time between stalls of one loop. See `SimulatedLoop.stall(for:)`.
  public var stallEvery: Duration?
  /// How long such a stall lasts.
  public var stallLength: ClosedRange<Duration> = .milliseconds(1) ... .seconds(1)

  public init() {}
}

/// The settings that all parts of a world use.
final class SimulatedSettings {
  var conditions = SimulatedConditions()
  var faults = SimulatedFaults()
  /// The wall clock's time at the monotonic clock's zero, in milliseconds since 1970.
  var wallClockStart: Int64 = 1_750_000_000_000

  func wallClock(at time: MonotonicTime) -> Int64 {
    wallClockStart + Int64(time.nanoseconds / 1_000_000)
  }
}
