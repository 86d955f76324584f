import SluiceClient
import SluiceWire
import Synchronization

/// Asks for the cursors of many topics, several at a time, since an answer takes a round trip. Topics that are gone, or that the client may not read, are left out.
final class CursorGathering: Sendable {
  /// Topics asked for at a time.
  private static let width = 64

  private struct State {
    /// The first topic that isn't asked for yet.
    var next = 0
    var missing: Int
    var hasFailed = false
    /// By topic.
    var found: [[CursorInfo]]
  }

  private let topics: [String]
  private let client: Client
  private let completion: @Sendable (Result<[CursorList.Entry], ClientError>) -> Void
  private let state: Mutex<State>

  /// - Parameters:
  ///   - topics: their names, in the order in which their cursors are listed.
  ///   - completion: called once, with the cursors or the first error.
  init(
    of topics: [String], _ client: Client,
    completion: @escaping @Sendable (Result<[CursorList.Entry], ClientError>) -> Void
  ) {
    self.topics = topics
    self.client = client
    self.completion = completion
    state = Mutex(State(missing: topics.count, found: topics.map { _ in [] }))
  }

  func begin() {
    guard !topics.isEmpty else { return completion(.success([])) }
    for _ in 0..<min(Self.width, topics.count) { askForNext() }
  }

  private func askForNext() {
    let index = state.withLock { state -> Int? in
      guard !state.hasFailed, state.next < topics.count else { return nil }
      state.next += 1
      return state.next - 1
    }
    guard let index else { return }
    client.cursors(of: topics[index]) { [self] result in take(result, at: index) }
  }

  private func take(_ result: Result<[CursorInfo], ClientError>, at index: Int) {
    var cursors: [CursorInfo] = []
    switch result {
    case .success(let found): cursors = found
    case .failure(let error) where error.code == .unknownTopic || error.code == .permissionDenied: break
    case .failure(let error):
      let isFirst = state.withLock { state in
        defer { state.hasFailed = true }
        return !state.hasFailed
      }
      if isFirst { completion(.failure(error)) }
      return
    }
    let all = state.withLock { state -> [[CursorInfo]]? in
      state.found[index] = cursors
      state.missing -= 1
      return state.missing == 0 && !state.hasFailed ? state.found : nil
    }
    guard let all else { return askForNext() }
    completion(.success(zip(topics, all).flatMap { topic, cursors in cursors.map { (topic, $0) } }))
  }
}
