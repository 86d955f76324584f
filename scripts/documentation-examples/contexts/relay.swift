// BLOCK
/// A channel that doesn't wait for its consumer.
struct Unbounded: Channel {
  typealias Element = Int

  private let stream: AsyncStream<Int>
  private let continuation: AsyncStream<Int>.Continuation

  init() { (stream, continuation) = AsyncStream.makeStream() }

  func send(_ element: Int) async { continuation.yield(element) }

  func finish() { continuation.finish() }

  func makeAsyncIterator() -> AsyncStream<Int>.Iterator { stream.makeAsyncIterator() }
}

let subscription = await relay([1, 2, 3], through: Unbounded())
while true { try await Task.sleep(for: .seconds(60)) }
