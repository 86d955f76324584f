import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct FutureValueTests {
  @Test func aResultThatIsThereIsReturned() async throws {
    #expect(await Future<Int, Never> { $0(.success(1)) }.value == 1)
    #expect(try await Future<Int, Oops> { $0(.success(2)) }.value == 2)
    await #expect(throws: Oops(number: 3)) {
      try await Future<Int, Oops> { $0(.failure(Oops(number: 3))) }.value
    }
  }

  @Test func waitsForAResult() async throws {
    var certain: Future<Int, Never>.Promise?
    let first = Future<Int, Never> { certain = $0 }
    var uncertain: Future<Int, Oops>.Promise?
    let second = Future<Int, Oops> { uncertain = $0 }
    async let value = first.value
    async let error: Result<Int, any Error> = {
      do { return .success(try await second.value) } catch { return .failure(error) }
    }()
    certain?(.success(5))
    uncertain?(.failure(Oops(number: 6)))
    #expect(await value == 5)
    let outcome = await error
    #expect(throws: Oops(number: 6)) { try outcome.get() }
  }

  @Test func cancellingTheTaskEndsTheWaitOfAFutureThatMayFail() async {
    let future = Future<Int, Oops> { _ in }
    let task = Task { try await future.value }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
  }

  @Test func cancellingTheTaskDoesNotKeepACertainResultFromIt() async {
    var promise: Future<Int, Never>.Promise?
    let future = Future<Int, Never> { promise = $0 }
    let task = Task { await future.value }
    task.cancel()
    promise?(.success(7))
    #expect(await task.value == 7)
  }

  @Test func settlingAndCancellingMayRace() async {
    for _ in 0..<200 {
      var made: Future<Int, Oops>.Promise?
      let future = Future<Int, Oops> { made = $0 }
      let promise = made!
      let task = Task { try await future.value }
      async let settling: Void = promise(.success(1))
      async let cancelling: Void = task.cancel()
      _ = await (settling, cancelling)
      switch await task.result {
      case .success(let value): #expect(value == 1)
      case .failure(let error): #expect(error is CancellationError)
      }
    }
  }
}
