public import Foundation
public import ReactiveCore
public import SluiceClient
import SluiceWire

extension TopicFailure {
  /// What may be known of any error: as ``init(describing:)``, and of a `LocalizedError` its description behind the type's name, in one line of 300 characters at most.
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
