import ReactiveCore
import ReactiveTestSupport

private func sequence<A: Publisher, B: Publisher>(
  _ name: String, overload: Int = 1, with detail: String = "",
  asCombine: [Int: [String]] = [:], _ special: @escaping @Sendable (Publishers.Sequence<[Int], Never>) -> A,
  _ general: @escaping @Sendable (General<Publishers.Sequence<[Int], Never>>) -> B
) -> SpecialisedCase {
  SpecialisedCase(
    "Publishers.Sequence." + name, overload: overload, with: detail,
    asCombine: asCombine,
    over: [[], [3, 1, 1, 4, 1, 5], [2, 2], [1, 0, 6]].map { $0.publisher }, special, general)
}

private func failableSequence<A: Publisher, B: Publisher>(
  _ name: String, overload: Int = 1, with detail: String = "",
  asCombine: [Int: [String]] = [:], _ special: @escaping @Sendable (Publishers.Sequence<[Int], Oops>) -> A,
  _ general: @escaping @Sendable (General<Publishers.Sequence<[Int], Oops>>) -> B
) -> SpecialisedCase {
  SpecialisedCase(
    "Publishers.Sequence." + name, overload: overload, with: detail,
    asCombine: asCombine,
    over: [[3, 1, 1, 4], [2, 2]].map { Publishers.Sequence(sequence: $0) }, special, general)
}

private func set<A: Publisher, B: Publisher>(
  _ name: String, overload: Int = 1, with detail: String = "",
  asCombine: [Int: [String]] = [:],
  _ special: @escaping @Sendable (Publishers.Sequence<Set<Int>, Never>) -> A,
  _ general: @escaping @Sendable (General<Publishers.Sequence<Set<Int>, Never>>) -> B
) -> SpecialisedCase {
  SpecialisedCase(
    "Publishers.Sequence." + name, overload: overload, with: detail,
    asCombine: asCombine,
    over: [[], [7, 8, 9]].map { Publishers.Sequence(sequence: $0) }, special, general)
}

private func optionals<A: Publisher, B: Publisher>(
  _ name: String, overload: Int = 1, with detail: String = "",
  asCombine: [Int: [String]] = [:], _ special: @escaping @Sendable (Publishers.Sequence<[Int?], Never>) -> A,
  _ general: @escaping @Sendable (General<Publishers.Sequence<[Int?], Never>>) -> B
) -> SpecialisedCase {
  SpecialisedCase(
    "Publishers.Sequence." + name, overload: overload, with: detail,
    asCombine: asCombine,
    over: [[], [nil, 1, nil]].map { Publishers.Sequence(sequence: $0) }, special, general)
}

extension SpecialisedCase {
  static let ofSequence: [SpecialisedCase] = [
    sequence("prepend(_:)", { $0.prepend(7, 8) }, { $0.prepend(7, 8) }),
    sequence("prepend(_:)", overload: 2, { $0.prepend(Set([7])) }, { $0.prepend(Set([7])) }),
    sequence(
      "prepend(_:)", overload: 3, { $0.prepend([7, 8].publisher) }, { $0.prepend([7, 8].publisher) }),
    sequence("append(_:)", { $0.append(7, 8) }, { $0.append(7, 8) }),
    sequence("append(_:)", overload: 2, { $0.append(Set([7])) }, { $0.append(Set([7])) }),
    sequence("append(_:)", overload: 3, { $0.append([7, 8].publisher) }, { $0.append([7, 8].publisher) }),
    failableSequence("count()", { $0.count() }, { $0.count() }),
    failableSequence("output(in:)", with: "in: 0..<1", { $0.output(in: 0..<1) }, { $0.output(in: 0..<1) }),
    failableSequence("output(in:)", with: "in: 1..<2", { $0.output(in: 1..<2) }, { $0.output(in: 1..<2) }),
    failableSequence("output(in:)", with: "in: 0..<0", { $0.output(in: 0..<0) }, { $0.output(in: 0..<0) }),
    set("first()", { $0.first() }, { $0.first() }),
    set("count()", overload: 2, { $0.count() }, { $0.count() }),
    set("output(at:)", with: "first", { $0.output(at: $0.sequence.startIndex) }, { $0.output(at: 0) }),
    set("output(at:)", with: "end", { $0.output(at: $0.sequence.endIndex) }, { $0.output(at: 9) }),
    sequence("last()", { $0.last() }, { $0.last() }),
    sequence("last(where:)", { $0.last(where: isEven) }, { $0.last(where: isEven) }),
    sequence("output(at:)", overload: 2, with: "at: 0", { $0.output(at: 0) }, { $0.output(at: 0) }),
    sequence("output(at:)", overload: 2, with: "at: 1", { $0.output(at: 1) }, { $0.output(at: 1) }),
    sequence("output(at:)", overload: 2, with: "at: 9", { $0.output(at: 9) }, { $0.output(at: 9) }),
    sequence("map(_:)", { $0.map(up) }, { $0.map(up) }),
    sequence("compactMap(_:)", { $0.compactMap(half) }, { $0.compactMap(half) }),
    sequence("filter(_:)", { $0.filter(isEven) }, { $0.filter(isEven) }),
    sequence("scan(_:_:)", { $0.scan(10, +) }, { $0.scan(10, +) }),
    optionals(
      "replaceNil(with:)",
      asCombine: [1: ["subscription", "Optional(7)", "Optional(1)", "Optional(7)", "finished"]],
      { $0.replaceNil(with: 7) }, { $0.replaceNil(with: 7) }),
    sequence("ignoreOutput()", { $0.ignoreOutput() }, { $0.ignoreOutput() }),
    sequence(
      "setFailureType(to:)", { $0.setFailureType(to: Oops.self) }, { $0.setFailureType(to: Oops.self) }),
    sequence("collect()", { $0.collect() }, { $0.collect() }),
    sequence("reduce(_:_:)", { $0.reduce(10, +) }, { $0.reduce(10, +) }),
    sequence("tryReduce(_:_:)", { $0.tryReduce(10, riskySum) }, { $0.tryReduce(10, riskySum) }),
    sequence("allSatisfy(_:)", { $0.allSatisfy(isEven) }, { $0.allSatisfy(isEven) }),
    sequence("tryAllSatisfy(_:)", { $0.tryAllSatisfy(riskyIsEven) }, { $0.tryAllSatisfy(riskyIsEven) }),
    sequence("contains(where:)", { $0.contains(where: isEven) }, { $0.contains(where: isEven) }),
    sequence(
      "tryContains(where:)", { $0.tryContains(where: riskyIsEven) }, { $0.tryContains(where: riskyIsEven) }),
    sequence("dropFirst(_:)", with: "default", { $0.dropFirst() }, { $0.dropFirst() }),
    sequence("dropFirst(_:)", with: "0", { $0.dropFirst(0) }, { $0.dropFirst(0) }),
    sequence("dropFirst(_:)", with: "3", { $0.dropFirst(3) }, { $0.dropFirst(3) }),
    sequence("dropFirst(_:)", with: "9", { $0.dropFirst(9) }, { $0.dropFirst(9) }),
    sequence("drop(while:)", { $0.drop(while: isEven) }, { $0.drop(while: isEven) }),
    sequence("prefix(_:)", with: "0", { $0.prefix(0) }, { $0.prefix(0) }),
    sequence("prefix(_:)", with: "1", { $0.prefix(1) }, { $0.prefix(1) }),
    sequence("prefix(_:)", with: "2", { $0.prefix(2) }, { $0.prefix(2) }),
    sequence("prefix(_:)", with: "9", { $0.prefix(9) }, { $0.prefix(9) }),
    sequence("prefix(while:)", { $0.prefix(while: isEven) }, { $0.prefix(while: isEven) }),
    sequence("removeDuplicates()", { $0.removeDuplicates() }, { $0.removeDuplicates() }),
    sequence("contains(_:)", { $0.contains(4) }, { $0.contains(4) }),
    sequence("min(by:)", { $0.min(by: isLess) }, { $0.min(by: isLess) }),
    sequence("max(by:)", { $0.max(by: isLess) }, { $0.max(by: isLess) }),
    sequence("first(where:)", { $0.first(where: isEven) }, { $0.first(where: isEven) }),
    sequence("min()", { $0.min() }, { $0.min() }),
    sequence("max()", { $0.max() }, { $0.max() }),
  ]
}
