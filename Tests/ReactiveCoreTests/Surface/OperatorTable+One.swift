import ReactiveCore
import ReactiveTestSupport

private struct TextCoder: TopLevelEncoder, TopLevelDecoder, Sendable {
  func encode<T: Encodable>(_ value: T) throws -> String { "\(value)" }
  func decode<T: Decodable>(_ type: T.Type, from: Int) throws -> T { from as! T }
}

private struct NoText: TextOutputStream {
  mutating func write(_ string: String) {}
}

extension OperatorCase {
  static let transforming: [OperatorCase] = [
    OperatorCase("map(_:)", "closure", passesEverything: true) { s, _ in s[0].map { $0 + 1 } },
    OperatorCase("map(_:)", "key path", passesEverything: true) { s, _ in s[0].map(\.bitWidth) },
    OperatorCase("map(_:_:)", passesEverything: true) { s, _ in s[0].map(\.bitWidth, \.nonzeroBitCount) },
    OperatorCase("map(_:_:_:)", passesEverything: true) { s, _ in
      s[0].map(\.bitWidth, \.nonzeroBitCount, \.magnitude)
    },
    OperatorCase("tryMap(_:)") { s, _ in s[0].tryMap { $0 + 1 } },
    OperatorCase("mapError(_:)", passesEverything: true) { s, _ in s[0].mapError { $0 } },
    OperatorCase("setFailureType(to:)", passesEverything: true) { s, _ in
      s[0].assertNoFailure().setFailureType(to: Oops.self)
    },
    OperatorCase("assertNoFailure(_:file:line:)", passesEverything: true) { s, _ in s[0].assertNoFailure() },
    OperatorCase("compactMap(_:)", passesEverything: true) { s, _ in s[0].compactMap { $0 == 2 ? nil : $0 } },
    OperatorCase("tryCompactMap(_:)") { s, _ in s[0].tryCompactMap { $0 == 2 ? nil : $0 } },
    OperatorCase("filter(_:)", passesEverything: true) { s, _ in s[0].filter { $0 != 2 } },
    OperatorCase("tryFilter(_:)") { s, _ in s[0].tryFilter { $0 != 2 } },
    OperatorCase("removeDuplicates()") { s, _ in s[0].removeDuplicates() },
    OperatorCase("removeDuplicates(by:)") { s, _ in s[0].removeDuplicates(by: ==) },
    OperatorCase("tryRemoveDuplicates(by:)") { s, _ in s[0].tryRemoveDuplicates(by: ==) },
    OperatorCase("replaceNil(with:)", passesEverything: true) { s, _ in
      AnyPublisher(s[0].map { Optional($0) }).replaceNil(with: 0)
    },
    OperatorCase("replaceEmpty(with:)") { s, _ in s[0].replaceEmpty(with: 0) },
    OperatorCase("replaceError(with:)") { s, _ in s[0].replaceError(with: 0) },
    OperatorCase("scan(_:_:)", passesEverything: true) { s, _ in s[0].scan(0, +) },
    OperatorCase("tryScan(_:_:)") { s, _ in s[0].tryScan(0, +) },
    OperatorCase("encode(encoder:)") { s, _ in s[0].encode(encoder: TextCoder()) },
    OperatorCase("decode(type:decoder:)") { s, _ in s[0].decode(type: Int.self, decoder: TextCoder()) },
    OperatorCase("drop(while:)") { s, _ in s[0].drop { $0 < 2 } },
    OperatorCase("tryDrop(while:)") { s, _ in s[0].tryDrop { $0 < 2 } },
    OperatorCase("dropFirst(_:)") { s, _ in s[0].dropFirst() },
    OperatorCase("prefix(while:)") { s, _ in s[0].prefix { $0 < 3 } },
    OperatorCase("tryPrefix(while:)") { s, _ in s[0].tryPrefix { $0 < 3 } },
    OperatorCase("prefix(_:)") { s, _ in s[0].prefix(2) },
    OperatorCase("output(at:)") { s, _ in s[0].output(at: 1) },
    OperatorCase("output(in:)") { s, _ in s[0].output(in: 1..<3) },
  ]

  static let reducing: [OperatorCase] = [
    OperatorCase("reduce(_:_:)") { s, _ in s[0].reduce(0, +) },
    OperatorCase("tryReduce(_:_:)") { s, _ in s[0].tryReduce(0, +) },
    OperatorCase("collect()") { s, _ in s[0].collect() },
    OperatorCase("collect(_:)") { s, _ in s[0].collect(2) },
    OperatorCase("ignoreOutput()", passesEverything: true) { s, _ in s[0].ignoreOutput() },
    OperatorCase("count()") { s, _ in s[0].count() },
    OperatorCase("min()") { s, _ in s[0].min() },
    OperatorCase("max()") { s, _ in s[0].max() },
    OperatorCase("min(by:)") { s, _ in s[0].min(by: <) },
    OperatorCase("max(by:)") { s, _ in s[0].max(by: <) },
    OperatorCase("tryMin(by:)") { s, _ in s[0].tryMin(by: <) },
    OperatorCase("tryMax(by:)") { s, _ in s[0].tryMax(by: <) },
    OperatorCase("contains(_:)") { s, _ in s[0].contains(2) },
    OperatorCase("contains(where:)") { s, _ in s[0].contains { $0 == 2 } },
    OperatorCase("tryContains(where:)") { s, _ in s[0].tryContains { $0 == 2 } },
    OperatorCase("allSatisfy(_:)") { s, _ in s[0].allSatisfy { $0 < 9 } },
    OperatorCase("tryAllSatisfy(_:)") { s, _ in s[0].tryAllSatisfy { $0 < 9 } },
    OperatorCase("first()") { s, _ in s[0].first() },
    OperatorCase("first(where:)") { s, _ in s[0].first { $0 == 2 } },
    OperatorCase("tryFirst(where:)") { s, _ in s[0].tryFirst { $0 == 2 } },
    OperatorCase("last()") { s, _ in s[0].last() },
    OperatorCase("last(where:)") { s, _ in s[0].last { $0 == 2 } },
    OperatorCase("tryLast(where:)") { s, _ in s[0].tryLast { $0 == 2 } },
  ]

  static let timed: [OperatorCase] = [
    OperatorCase("receive(on:options:)") { s, c in s[0].receive(on: c) },
    OperatorCase("subscribe(on:options:)") { s, c in s[0].subscribe(on: c) },
    OperatorCase("delay(for:tolerance:scheduler:options:)") { s, c in s[0].delay(for: 1, scheduler: c) },
    OperatorCase("debounce(for:scheduler:options:)") { s, c in s[0].debounce(for: 1, scheduler: c) },
    OperatorCase("throttle(for:scheduler:latest:)") { s, c in
      s[0].throttle(for: 1, scheduler: c, latest: true)
    },
    OperatorCase("timeout(_:scheduler:options:customError:)") { s, c in
      s[0].timeout(.seconds(1_000_000), scheduler: c)
    },
    OperatorCase("measureInterval(using:options:)") { s, c in
      AnyPublisher(s[0].measureInterval(using: c)).map { _ in "some time" }
    },
    OperatorCase("collect(_:options:)", "by time") { s, c in s[0].collect(.byTime(c, 1)) },
    OperatorCase("collect(_:options:)", "by time or count") { s, c in
      s[0].collect(.byTimeOrCount(c, 1, 2))
    },
  ]

  static let others: [OperatorCase] = [
    OperatorCase("buffer(size:prefetch:whenFull:)", "kept full") { s, _ in
      s[0].buffer(size: 2, prefetch: .keepFull, whenFull: .dropNewest)
    },
    OperatorCase("buffer(size:prefetch:whenFull:)", "by request") { s, _ in
      s[0].buffer(size: 9, prefetch: .byRequest, whenFull: .dropNewest)
    },
    OperatorCase("breakpoint(receiveSubscription:receiveOutput:receiveCompletion:)", passesEverything: true) {
      s, _ in s[0].breakpoint()
    },
    OperatorCase("breakpointOnError()", passesEverything: true) { s, _ in s[0].breakpointOnError() },
    OperatorCase(
      "handleEvents(receiveSubscription:receiveOutput:receiveCompletion:receiveCancel:receiveRequest:)"
    ) { s, _ in s[0].handleEvents(receiveOutput: { _ in }) },
    OperatorCase("print(_:to:)") { s, _ in s[0].print(to: NoText()) },
    OperatorCase("eraseToAnyPublisher()", passesEverything: true) { s, _ in s[0].eraseToAnyPublisher() },
    OperatorCase("makeConnectable()") { s, _ in s[0].replaceError(with: 0).makeConnectable().autoconnect() },
    OperatorCase("autoconnect()") { s, _ in s[0].multicast(subject: PassthroughSubject()).autoconnect() },
    OperatorCase("multicast(_:)") { s, _ in s[0].multicast { PassthroughSubject() }.autoconnect() },
    OperatorCase("multicast(subject:)") { s, _ in
      s[0].multicast(subject: PassthroughSubject()).autoconnect()
    },
    OperatorCase("share()") { s, _ in s[0].share() },
    OperatorCase("retry(_:)") { s, _ in s[0].retry(1) },
    OperatorCase("catch(_:)", "first") { s, _ in s[0].catch { _ in Just(0) } },
    OperatorCase("catch(_:)", "second") { s, _ in
      let second = s[0]
      return AnyPublisher(Fail<Int, Oops>(error: Oops())).catch { _ in second }
    },
    OperatorCase("tryCatch(_:)", "first") { s, _ in s[0].tryCatch { _ in Just(0) } },
    OperatorCase("tryCatch(_:)", "second") { s, _ in
      let second = s[0]
      return AnyPublisher(Fail<Int, Oops>(error: Oops())).tryCatch { _ in second }
    },
  ]
}
