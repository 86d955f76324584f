import SluiceClient
import Synchronization

/// Sends a request for each of many topics, several at a time, because an answer takes a round trip.
final class TopicGathering<Value: Sendable>: Sendable {
  typealias Completion = @Sendable (Result<[(topic: String, value: Value)], ClientError>) -> Void
  /// Sends the request for one topic. An answer of nil leaves the topic out; an error ends the gathering.
  typealias Request = @Sendable (String, @escaping @Sendable (Result<Value?, ClientError>) -> Void) -> Void

  private struct State {
    /// The index of the next topic.
    var next = 0
    var missing: Int
    var hasFailed = false
    /// The answers, in the order of the topics.
    var found: [Value?]
  }

  /// The number of requests at a time.
  private let width = 64
  private let topics: [String]
  private let request: Request
  private let completion: Completion
  private let state: Mutex<State>

  /// - Parameters:
  ///   - topics: their names, in the order in which the answers are given.
  ///   - request: called on the client's loop.
  ///   - completion: called once, with the answers or the first error.
  init(of topics: [String], _ request: @escaping Request, completion: @escaping Completion) {
    self.topics = topics
    self.request = request
    self.completion = completion
    state = Mutex(State(missing: topics.count, found: topics.map { _ in nil }))
  }

  func begin() {
    guard !topics.isEmpty else { return completion(.success([])) }
    for _ in 0..<min(width, topics.count) { askForNext() }
  }

  private func askForNext() {
    let index = state.withLock { state -> Int? in
      guard !state.hasFailed, state.next < topics.count else { return nil }
      state.next += 1
      return state.next - 1
    }
    guard let index else { return }
    request(topics[index]) { [self] result in take(result, at: index) }
  }

  private func take(_ result: Result<Value?, ClientError>, at index: Int) {
    switch result {
    case .success(let value):
      let all = state.withLock { state -> [Value?]? in
        state.found[index] = value
        state.missing -= 1
        return state.missing == 0 && !state.hasFailed ? state.found : nil
      }
      guard let all else { return askForNext() }
      completion(.success(zip(topics, all).compactMap { topic, value in value.map { (topic, $0) } }))
    case .failure(let error):
      let isFirst = state.withLock { state in
        defer { state.hasFailed = true }
        return !state.hasFailed
      }
      if isFirst { completion(.failure(error)) }
    }
  }
}
