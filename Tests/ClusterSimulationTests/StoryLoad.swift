import SluiceClient

/// Clients of one kind in a ``WholeStory``, with their own oracle.
protocol StoryLoad: AnyObject {
  /// Performs some actions, once before each fault.
  func act()
  /// The faults have ended: finishes pending actions.
  func finish()
  /// Starts again after ``finish()``, if this kind of clients can.
  func begin()
  /// The story has ended: requests nothing more.
  func leave()
  /// Whether nothing is pending.
  var isDone: Bool { get }
  /// The pending work, for messages.
  var open: String { get }
  var notes: LoadNotes { get }
}

/// The problems of a load, and how often its events occurred.
struct LoadNotes {
  private let load: String
  private(set) var problems: [String] = []
  private(set) var counts: [String: Int] = [:]

  init(_ load: String) { self.load = load }

  mutating func note(_ problem: String) {
    if problems.count < 5 { problems.append("\(load): \(problem)") }
  }

  mutating func count(_ what: String) { counts[what, default: 0] += 1 }
}

/// A fault that a test plants in the clients of a story, or in the oracle's input, for the oracle to notice.
enum LoadFlaw: CaseIterable {
  /// The oracle doesn't learn of a record that the cursor's subscriber commits before receiving it.
  case commitsAhead
  /// Some requests get no reply, although the responder has received them.
  case lostAnswer
  /// Some requests get another request's reply.
  case wrongAnswer
  /// A group's member retries what the oracle takes for acknowledged.
  case retriesForAcknowledging
  /// The load reports trims to the oracle that it doesn't request.
  case forgetsTrim
}
