public import Foundation
public import ReactiveCore
public import SluiceClient
import SluiceWire

extension TopicFailure {
  /// The failure that is sent by default for an error: as ``init(describing:)``, but for a `LocalizedError` with its description after the type's name, in one
  /// line of at most 300 characters.
  public init(localized error: any Error) {
    self.init(describing: error)
    guard !(error is TopicFailure), let text = (error as? any LocalizedError)?.errorDescription, !text.isEmpty
    else { return }
    message = "\(Self.name(of: error)): \(ShownText.line(text, limit: Self.longestDescription))"
  }
}

extension Publisher where Output == Message, Failure: LocalizedError {
  /// Publishes this publisher's values to a topic: see `publish(to:when:failure:)`. Subscribers get the description of its failure.
  public func publish(to subject: TopicSubject, when condition: PublishCondition) -> SourcePublication {
    publish(to: subject, when: condition) { TopicFailure(localized: $0) }
  }
}
