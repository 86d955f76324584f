import ReactiveCore

/// A subscriber as the loop calls it: once per batch, whatever its type.
///
/// Closures rather than a generic subclass: a closure made where the subscriber's type is known is compiled for that type, while a
/// generic class's overridden methods are not.
@usableFromInline
final class Receiver {
  /// Hands over so many records of a batch at the most. Returns the demand that they brought.
  @usableFromInline typealias Records = (inout DeliveredBatch, _ limit: Int, RemoteSubscription) ->
    Subscribers.Demand
  /// Hands over an event between records. Returns the demand that it brought.
  @usableFromInline typealias Mark = (TopicMark) -> Subscribers.Demand
  @usableFromInline typealias Completion = (Subscribers.Completion<ClientError>) -> Void

  let records: Records
  /// Nil when only records are wanted.
  let mark: Mark?
  let completion: Completion

  @usableFromInline
  init(
    records: @escaping Records, mark: Mark?, completion: @escaping Completion
  ) {
    self.records = records
    self.mark = mark
    self.completion = completion
  }
}
