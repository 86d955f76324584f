import SluiceTopics
import Synchronization

/// How far an orderly stop is. From any thread.
final class BrokerStage: Sendable {
  enum Stage: UInt8, AtomicRepresentable {
    case serving
    /// The loops stop publishing, one after another.
    case quiescing
    /// No loop appends any more. Every topic's head is final, so a subscriber that has reached the head has all records.
    case draining
  }

  private let stage = Atomic(Stage.serving)

  var present: Stage { stage.load(ordering: .acquiring) }

  func advance(to stage: Stage) { self.stage.store(stage, ordering: .sequentiallyConsistent) }
}
