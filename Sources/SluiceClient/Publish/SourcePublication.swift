import ReactiveCore
import Synchronization

/// The publication of a publisher's values to a topic, returned by `publish(to:when:)`. It can be cancelled, and reports its end.
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
/// - It ends with `.finished` when the publisher has finished and the broker has confirmed the topic's end.
/// - It ends with `.failure` with the publisher's failure, when the broker has confirmed that; with the reason, when the broker or the client has ended the
///   publication; and with ``ClientError/Code/cancelled``, when it was cancelled.
/// - It doesn't end with a run of the publisher if the topic starts over with its next subscriber: see ``PublishCondition/connected``.
/// - As a publisher it has no values. Later subscribers get the end. The end is delivered on the client's loop, or on the thread that
///   cancels.
/// - Releasing it cancels it. Neither a subscription to it nor ``waitUntilFinished()`` retains it.
public final class SourcePublication: Cancellable, Publisher, Sendable {
  public typealias Output = Never
  public typealias Failure = ClientError

  private let attachment: SourceAttachment
  /// Nil after it was cancelled.
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

  /// Cancels the publisher, and releases the subject. From any thread; a second call has no effect.
  public func cancel() {
    // The end is reported as a cancellation, independently of the subject's end.
    end.cancel()
    attachment.cancel()
    outcome.send(completion: .failure(.publishingCancelled))
    let subject = subject.withLock { exchange(&$0, with: nil) }
    withExtendedLifetime(subject) {}
  }

  public func receive<S: Subscriber>(subscriber: S) where S.Input == Never, S.Failure == ClientError {
    outcome.subscribe(subscriber)
  }

  /// Returns when the publisher has finished and the broker has confirmed the topic's end.
  ///
  /// - Throws: the failure with which it has ended; ``ClientError/Code/cancelled`` also if the task is cancelled, which ends only the wait.
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
