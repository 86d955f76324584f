import SluiceClient

/// Clients of one kind in a ``WholeStory``, with an oracle of their own.
protocol StoryLoad: AnyObject {
  /// Does some of what such clients do, once before each fault.
  func act()
  /// Nothing is broken any more: brings to an end what was begun.
  func finish()
  /// Begins again behind ``finish()``, as clients of a kind that can.
  func begin()
  /// The story is over: nothing more is taken or asked for.
  func leave()
  /// Whether all has come to its end.
  var isDone: Bool { get }
  /// What is missing, for messages.
  var open: String { get }
  var notes: LoadNotes { get }
}

/// What is wrong with a load, and how often what it is there for has happened.
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

/// What a test plants in the clients of a story, or in what its oracle is told, so that the oracle must notice.
enum LoadFlaw: CaseIterable {
  /// The oracle isn't told of a record that the cursor's subscriber commits ahead of what it has got.
  case commitsAhead
  /// One in so many requests gets no answer, although the responder has it.
  case lostAnswer
  /// One in so many requests gets the answer to another one.
  case wrongAnswer
  /// A group's member retries what the oracle takes for acknowledged.
  case retriesForAcknowledging
  /// The oracle is told of trims that aren't made.
  case forgetsTrim
}
