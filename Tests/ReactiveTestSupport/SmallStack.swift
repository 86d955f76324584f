import Foundation

/// Runs a function on a thread whose stack is so small that recursion which grows with a stream of thousands ends the program.
///
/// - Parameter size: Bytes of stack, a multiple of the page size.
package func onSmallStack<Result: Sendable>(
  _ size: Int = 128 << 10, _ body: @escaping @Sendable () -> Result
) async -> Result {
  await withCheckedContinuation { continuation in
    let thread = Thread { continuation.resume(returning: body()) }
    thread.stackSize = size
    thread.start()
  }
}
