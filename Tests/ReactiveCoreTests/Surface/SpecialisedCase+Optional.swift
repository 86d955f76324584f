import ReactiveCore
import ReactiveTestSupport

private func optional<A: Publisher, B: Publisher>(
  _ name: String, overload: Int = 1, with detail: String = "",
  asCombine: [Int: [String]] = [:], _ special: @escaping @Sendable (Optional<Int>.Publisher) -> A,
  _ general: @escaping @Sendable (General<Optional<Int>.Publisher>) -> B
) -> SpecialisedCase {
  SpecialisedCase(
    "Optional.Publisher." + name, overload: overload, with: detail,
    asCombine: asCombine,
    over: [Optional(4).publisher, Optional(3).publisher, Int?.none.publisher], special, general)
}

extension SpecialisedCase {
  static let ofOptional: [SpecialisedCase] = [
    optional("map(_:)", { $0.map(up) }, { $0.map(up) }),
    optional("compactMap(_:)", { $0.compactMap(half) }, { $0.compactMap(half) }),
    optional("filter(_:)", { $0.filter(isEven) }, { $0.filter(isEven) }),
    optional(
      "reduce(_:_:)", asCombine: [2: SpecialisedCase.nothing], { $0.reduce(10, +) }, { $0.reduce(10, +) }),
    optional("scan(_:_:)", { $0.scan(10, +) }, { $0.scan(10, +) }),
    optional("collect()", { $0.collect() }, { $0.collect() }),
    optional("count()", asCombine: [2: SpecialisedCase.nothing], { $0.count() }, { $0.count() }),
    optional("ignoreOutput()", { $0.ignoreOutput() }, { $0.ignoreOutput() }),
    optional(
      "allSatisfy(_:)", asCombine: [2: SpecialisedCase.nothing], { $0.allSatisfy(isEven) },
      { $0.allSatisfy(isEven) }),
    optional(
      "contains(where:)", asCombine: [2: SpecialisedCase.nothing], { $0.contains(where: isEven) },
      { $0.contains(where: isEven) }),
    optional("min(by:)", { $0.min(by: isLess) }, { $0.min(by: isLess) }),
    optional("max(by:)", { $0.max(by: isLess) }, { $0.max(by: isLess) }),
    optional(
      "removeDuplicates(by:)", { $0.removeDuplicates(by: isSame) }, { $0.removeDuplicates(by: isSame) }),
    optional("first()", { $0.first() }, { $0.first() }),
    optional("first(where:)", { $0.first(where: isEven) }, { $0.first(where: isEven) }),
    optional("last()", { $0.last() }, { $0.last() }),
    optional("last(where:)", { $0.last(where: isEven) }, { $0.last(where: isEven) }),
    optional("dropFirst(_:)", with: "default", { $0.dropFirst() }, { $0.dropFirst() }),
    optional("dropFirst(_:)", with: "0", { $0.dropFirst(0) }, { $0.dropFirst(0) }),
    optional("dropFirst(_:)", with: "3", { $0.dropFirst(3) }, { $0.dropFirst(3) }),
    optional("dropFirst(_:)", with: "9", { $0.dropFirst(9) }, { $0.dropFirst(9) }),
    optional("drop(while:)", { $0.drop(while: isEven) }, { $0.drop(while: isEven) }),
    optional("prefix(_:)", with: "0", { $0.prefix(0) }, { $0.prefix(0) }),
    optional("prefix(_:)", with: "1", { $0.prefix(1) }, { $0.prefix(1) }),
    optional("prefix(_:)", with: "2", { $0.prefix(2) }, { $0.prefix(2) }),
    optional("prefix(_:)", with: "9", { $0.prefix(9) }, { $0.prefix(9) }),
    optional("prefix(while:)", { $0.prefix(while: isEven) }, { $0.prefix(while: isEven) }),
    optional("output(at:)", with: "at: 0", { $0.output(at: 0) }, { $0.output(at: 0) }),
    optional("output(at:)", with: "at: 1", { $0.output(at: 1) }, { $0.output(at: 1) }),
    optional("output(at:)", with: "at: 9", { $0.output(at: 9) }, { $0.output(at: 9) }),
    optional("output(in:)", with: "in: 0..<1", { $0.output(in: 0..<1) }, { $0.output(in: 0..<1) }),
    optional("output(in:)", with: "in: 0...", { $0.output(in: 0...) }, { $0.output(in: 0...) }),
    optional("output(in:)", with: "in: 1..<3", { $0.output(in: 1..<3) }, { $0.output(in: 1..<3) }),
    optional("output(in:)", with: "in: 1...", { $0.output(in: 1...) }, { $0.output(in: 1...) }),
    optional("output(in:)", with: "in: ...0", { $0.output(in: ...0) }, { $0.output(in: ...0) }),
    optional("output(in:)", with: "in: 0..<0", { $0.output(in: 0..<0) }, { $0.output(in: 0..<0) }),
    optional("replaceError(with:)", { $0.replaceError(with: 7) }, { $0.replaceError(with: 7) }),
    optional("replaceEmpty(with:)", { $0.replaceEmpty(with: 7) }, { $0.replaceEmpty(with: 7) }),
    optional("retry(_:)", { $0.retry(2) }, { $0.retry(2) }),
    optional("contains(_:)", asCombine: [2: SpecialisedCase.nothing], { $0.contains(4) }, { $0.contains(4) }),
    optional("removeDuplicates()", { $0.removeDuplicates() }, { $0.removeDuplicates() }),
    optional("min()", { $0.min() }, { $0.min() }),
    optional("max()", { $0.max() }, { $0.max() }),
  ]
}
