import SluiceIO
import SluiceWire

@testable import SluiceClient

/// A scenario for a group, made from a seed: its options, its members, and the faults.
struct GroupPlan {
  var options = GroupOptions()
  var workers = 3
  var records = 120
  var brokerLoops = 1
  var isLossless = false
  var breaksOff = false
  var kills = false
  /// Whether workers leave and rejoin.
  var leaves = false
  /// Whether the broker is killed once and loses the contents of its memory.
  var crashes = false
  /// Whether topics are stored before any client receives their records. A crash then loses neither records nor acknowledgements.
  var isDurable = false
  /// Whether the topic is trimmed at times.
  var trims = false
  /// A flaw for the oracle to find: the workers retry at once and report a delay.
  var hidesRetries = false
  let seed: UInt64

  static let topic = "jobs"
  static let deadLetters = "jobs.dead"
  static let group = "workers"

  init(seed: UInt64) {
    self.seed = seed
    var random = SeededRandom(seed: seed &* 0x51ed_270b)
    workers = random.next(in: 1...6)
    records = random.next(in: 20...150)
    brokerLoops = random.next(in: 1...3)
    isLossless = random.oneIn(4)
    breaksOff = random.oneIn(2)
    kills = random.oneIn(2)
    leaves = random.oneIn(2)
    crashes = random.oneIn(4)
    var storage = SeededRandom(seed: seed &* 0x7f4a_7c15)
    isDurable = storage.oneIn(3)
    if isDurable { crashes = storage.oneIn(2) }
    trims = storage.oneIn(4)
    guard !random.oneIn(4) else { return }
    options.acknowledgement = .explicit
    var retries = SeededRandom(seed: seed &* 0x6c62_272e)
    if retries.oneIn(2) {
      let first = retries.next(in: 1...200)
      options.retryBackoff = .milliseconds(first) ... .milliseconds(first + retries.next(in: 0...600))
    }
    if random.oneIn(2) { options.order = .byKey }
    if random.oneIn(2) { options.deadline = random.next(in: .milliseconds(50) ... .seconds(2)) }
    if random.oneIn(2) {
      options.deliveries = UInt32(random.next(in: 2...6))
      options.deadLetters = Self.deadLetters
    }
  }

  /// Whether a retried record can come back for no other reason, so that its delay is seen.
  var showsDelays: Bool { isQuiet && isExplicit && options.deadline == nil }

  /// The group's own delay of a retry.
  func backoff(after deliveries: Int) -> Duration {
    guard let backoff = options.retryBackoff else { return .zero }
    return min(backoff.lowerBound * (1 << (deliveries - 1)), backoff.upperBound)
  }

  var isExplicit: Bool { options.acknowledgement == .explicit }

  /// Whether nothing is lost, so that each record reaches a member even without acknowledgement.
  var isQuiet: Bool { !breaksOff && !kills && !leaves && !crashes && !trims }
}
