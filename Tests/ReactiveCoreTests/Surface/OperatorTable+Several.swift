import ReactiveCore
import ReactiveTestSupport

extension OperatorCase {
  static let combining: [OperatorCase] = [
    OperatorCase("combineLatest(_:)", of: 2) { s, _ in s[0].combineLatest(s[1]) },
    OperatorCase("combineLatest(_:_:)", "transform", of: 2) { s, _ in s[0].combineLatest(s[1]) { [$0, $1] } },
    OperatorCase("combineLatest(_:_:)", of: 3) { s, _ in s[0].combineLatest(s[1], s[2]) },
    OperatorCase("combineLatest(_:_:_:)", "transform", of: 3) { s, _ in
      s[0].combineLatest(s[1], s[2]) { [$0, $1, $2] }
    },
    OperatorCase("combineLatest(_:_:_:)", of: 4) { s, _ in s[0].combineLatest(s[1], s[2], s[3]) },
    OperatorCase("combineLatest(_:_:_:_:)", "transform", of: 4) { s, _ in
      s[0].combineLatest(s[1], s[2], s[3]) { [$0, $1, $2, $3] }
    },
    OperatorCase("zip(_:)", of: 2) { s, _ in s[0].zip(s[1]) },
    OperatorCase("zip(_:_:)", "transform", of: 2) { s, _ in s[0].zip(s[1]) { [$0, $1] } },
    OperatorCase("zip(_:_:)", of: 3) { s, _ in s[0].zip(s[1], s[2]) },
    OperatorCase("zip(_:_:_:)", "transform", of: 3) { s, _ in s[0].zip(s[1], s[2]) { [$0, $1, $2] } },
    OperatorCase("zip(_:_:_:)", of: 4) { s, _ in s[0].zip(s[1], s[2], s[3]) },
    OperatorCase("zip(_:_:_:_:)", "transform", of: 4) { s, _ in
      s[0].zip(s[1], s[2], s[3]) { [$0, $1, $2, $3] }
    },
    OperatorCase("merge(with:)", "many", of: 3) { s, _ in Publishers.MergeMany(s) },
    OperatorCase("merge(with:)", of: 2) { s, _ in Publishers.Merge(s[0], s[1]) },
    OperatorCase("merge(with:_:)", of: 3) { s, _ in s[0].merge(with: s[1], s[2]) },
    OperatorCase("merge(with:_:_:)", of: 4) { s, _ in s[0].merge(with: s[1], s[2], s[3]) },
    OperatorCase("merge(with:_:_:_:)", of: 5) { s, _ in s[0].merge(with: s[1], s[2], s[3], s[4]) },
    OperatorCase("merge(with:_:_:_:_:)", of: 6) { s, _ in s[0].merge(with: s[1], s[2], s[3], s[4], s[5]) },
    OperatorCase("merge(with:_:_:_:_:_:)", of: 7) { s, _ in
      s[0].merge(with: s[1], s[2], s[3], s[4], s[5], s[6])
    },
    OperatorCase("merge(with:_:_:_:_:_:_:)", of: 8) { s, _ in
      s[0].merge(with: s[1], s[2], s[3], s[4], s[5], s[6], s[7])
    },
    OperatorCase("append(_:)", "publisher", of: 2) { s, _ in s[0].append(s[1]) },
    OperatorCase("append(_:)", "elements") { s, _ in s[0].append(7, 8) },
    OperatorCase("prepend(_:)", "publisher", of: 2) { s, _ in s[0].prepend(s[1]) },
    OperatorCase("prepend(_:)", "elements") { s, _ in s[0].prepend(7, 8) },
    OperatorCase("drop(untilOutputFrom:)", of: 2) { s, _ in s[0].drop(untilOutputFrom: s[1]) },
    OperatorCase("prefix(untilOutputFrom:)", of: 2) { s, _ in s[0].prefix(untilOutputFrom: s[1]) },
    OperatorCase("flatMap(maxPublishers:_:)", "outer") { s, _ in
      s[0].flatMap { Just($0).setFailureType(to: Oops.self) }
    },
    OperatorCase("flatMap(maxPublishers:_:)", "outer, one at a time") { s, _ in
      s[0].flatMap(maxPublishers: .max(1)) { Just($0) }
    },
    OperatorCase("flatMap(maxPublishers:_:)", "inner", of: 2) { s, _ in
      let (first, second) = (s[0], s[1])
      return AnyPublisher([0, 1].publisher.setFailureType(to: Oops.self)).flatMap { $0 == 0 ? first : second }
    },
    OperatorCase("switchToLatest()", "outer") { s, _ in
      s[0].map { Just($0).setFailureType(to: Oops.self) }.switchToLatest()
    },
    OperatorCase("switchToLatest()", "inner") { s, _ in
      AnyPublisher(Just(s[0]).setFailureType(to: Oops.self)).switchToLatest()
    },
  ]
}
