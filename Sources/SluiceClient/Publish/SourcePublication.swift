import ReactiveCore
import Synchronization

/// A publisher that publishes to a topic: what `publish(to:when:)` returns. It can be cancelled, and tells how it ends.
///
/// ```swift
/// let publication = sensor.readings.publish(to: subject, when: .connected)
/// do {
///   try await publication.waitUntilFinished()
/// } catch {
///   print("the readings are no longer published: \(error)")
/// }
/// ```
///
/// - The end: `.finished` when the publisher has finished and the broker has confirmed the topic's end; `.failure` with the publisher's own failure when it
///   has failed and the broker has confirmed that, with why the broker or the client has broken the publication off, or with
///   ``ClientError/Code/cancelled`` when it was cancelled. A topic that starts over with its next subscriber goes on after the publisher's end: see ``PublishCondition/connected``.
/// - As a publisher it has no values, and ends as said here, also for subscribers that come after the end. The end is told on the client's loop, or on the
///   thread that cancels.
/// - Releasing it cancels it. A subscription to it doesn't keep it, and neither does ``waitUntilFinished()`` of a task that doesn't hold it otherwise.
public final class SourcePublication: Cancellable, Publisher, Sendable {
  public typealias Output = Never
  public typealias Failure = ClientError

  private let attachment: SourceAttachment
  /// Nil when it was cancelled.
  private let subject: Mutex<TopicSubject?>
  private let outcome = PassthroughSubject<Never, ClientError>()
  private let end: AnyCancellable

  init(_ attachment: SourceAttachment, _ subject: TopicSubject) {
    self.attachment = attachment
    self.subject = Mutex(subject)
    end = subject.publication.echo.sink { [outcome] in
      outcome.send(completion: $0)
    } receiveValue: { _ in
    }
  }

  deinit {
    cancel()
  }

  /// Cancels the publisher, and lets go of the subject. From any thread; again does nothing.
  public func cancel() {
    // Its end is told as a cancellation, whatever comes of the subject.
    end.cancel()
    attachment.cancel()
    outcome.send(completion: .failure(.publishingCancelled))
    let subject = subject.withLock { exchange(&$0, for: nil) }
    withExtendedLifetime(subject) {}
  }

  public func receive<S: Subscriber>(subscriber: S) where S.Input == Never, S.Failure == ClientError {
    outcome.subscribe(subscriber)
  }

  /// Returns when the publisher has finished and the broker has confirmed the topic's end.
  ///
  /// - Throws: why it ended otherwise; ``ClientError/Code/cancelled`` also when the task is cancelled, which cancels nothing else.
  public func waitUntilFinished() async throws(ClientError) {
    let reply = Reply<Void>()
    let waiting = outcome.sink { completion in
      switch completion {
      case .finished: reply.complete(.success(()))
      case .failure(let error): reply.complete(.failure(error))
      }
    } receiveValue: { _ in
    }
    defer { waiting.cancel() }
    try await reply.value()
  }
}
