import ReactiveCore
import ReactiveTestSupport

// Functions for the cases. Those that throw do it for 0.
func up(_ number: Int) -> Int { number + 1 }
func half(_ number: Int) -> Int? { number % 2 == 0 ? number / 2 : nil }
func isEven(_ number: Int) -> Bool { number % 2 == 0 }
func isSame(_ left: Int, _ right: Int) -> Bool { left == right }
/// 4 and 5 count as equal.
func isLess(_ left: Int, _ right: Int) -> Bool { left / 2 < right / 2 }
func oops<E: Error>(_ error: E) -> Oops { Oops(number: 9) }

func risky(_ number: Int) throws -> Int {
  guard number != 0 else { throw Oops(number: 8) }
  return number + 1
}

func riskySum(_ left: Int, _ right: Int) throws -> Int { try left + risky(right) }
func riskyIsEven(_ number: Int) throws -> Bool { try isEven(risky(number)) }
func riskyIsSame(_ left: Int, _ right: Int) throws -> Bool { try risky(left) == risky(right) }
func riskyIsLess(_ left: Int, _ right: Int) throws -> Bool { try risky(left) < risky(right) }

private func just<A: Publisher, B: Publisher>(
  _ name: String, overload: Int = 1, with detail: String = "",
  asCombine: [Int: [String]] = [:], _ special: @escaping @Sendable (Just<Int>) -> A,
  _ general: @escaping @Sendable (General<Just<Int>>) -> B
) -> SpecialisedCase {
  SpecialisedCase(
    "Just." + name, overload: overload, with: detail, asCombine: asCombine,
    over: [Just(4), Just(3), Just(0)], special, general)
}

extension SpecialisedCase {
  static let ofJust: [SpecialisedCase] = [
    just("map(_:)", { $0.map(up) }, { $0.map(up) }),
    just("tryMap(_:)", { $0.tryMap(risky) }, { $0.tryMap(risky) }),
    just("compactMap(_:)", { $0.compactMap(half) }, { $0.compactMap(half) }),
    just("filter(_:)", { $0.filter(isEven) }, { $0.filter(isEven) }),
    just("reduce(_:_:)", { $0.reduce(10, +) }, { $0.reduce(10, +) }),
    just("tryReduce(_:_:)", { $0.tryReduce(10, riskySum) }, { $0.tryReduce(10, riskySum) }),
    just("scan(_:_:)", { $0.scan(10, +) }, { $0.scan(10, +) }),
    just("tryScan(_:_:)", { $0.tryScan(10, riskySum) }, { $0.tryScan(10, riskySum) }),
    just("collect()", { $0.collect() }, { $0.collect() }),
    just("count()", { $0.count() }, { $0.count() }),
    just("ignoreOutput()", { $0.ignoreOutput() }, { $0.ignoreOutput() }),
    just("allSatisfy(_:)", { $0.allSatisfy(isEven) }, { $0.allSatisfy(isEven) }),
    just("tryAllSatisfy(_:)", { $0.tryAllSatisfy(riskyIsEven) }, { $0.tryAllSatisfy(riskyIsEven) }),
    just("contains(where:)", { $0.contains(where: isEven) }, { $0.contains(where: isEven) }),
    just(
      "tryContains(where:)", { $0.tryContains(where: riskyIsEven) }, { $0.tryContains(where: riskyIsEven) }),
    just("min(by:)", { $0.min(by: isLess) }, { $0.min(by: isLess) }),
    just("max(by:)", { $0.max(by: isLess) }, { $0.max(by: isLess) }),
    just("removeDuplicates(by:)", { $0.removeDuplicates(by: isSame) }, { $0.removeDuplicates(by: isSame) }),
    just(
      "tryRemoveDuplicates(by:)", asCombine: [2: SpecialisedCase.thrown],
      { $0.tryRemoveDuplicates(by: riskyIsSame) },
      { $0.tryRemoveDuplicates(by: riskyIsSame) }),
    just("first()", { $0.first() }, { $0.first() }),
    just("first(where:)", { $0.first(where: isEven) }, { $0.first(where: isEven) }),
    just("last()", { $0.last() }, { $0.last() }),
    just("last(where:)", { $0.last(where: isEven) }, { $0.last(where: isEven) }),
    just("dropFirst(_:)", with: "default", { $0.dropFirst() }, { $0.dropFirst() }),
    just("dropFirst(_:)", with: "0", { $0.dropFirst(0) }, { $0.dropFirst(0) }),
    just("dropFirst(_:)", with: "3", { $0.dropFirst(3) }, { $0.dropFirst(3) }),
    just("dropFirst(_:)", with: "9", { $0.dropFirst(9) }, { $0.dropFirst(9) }),
    just("drop(while:)", { $0.drop(while: isEven) }, { $0.drop(while: isEven) }),
    just("prefix(_:)", with: "0", { $0.prefix(0) }, { $0.prefix(0) }),
    just("prefix(_:)", with: "1", { $0.prefix(1) }, { $0.prefix(1) }),
    just("prefix(_:)", with: "2", { $0.prefix(2) }, { $0.prefix(2) }),
    just("prefix(_:)", with: "9", { $0.prefix(9) }, { $0.prefix(9) }),
    just("prefix(while:)", { $0.prefix(while: isEven) }, { $0.prefix(while: isEven) }),
    just("output(at:)", with: "at: 0", { $0.output(at: 0) }, { $0.output(at: 0) }),
    just("output(at:)", with: "at: 1", { $0.output(at: 1) }, { $0.output(at: 1) }),
    just("output(at:)", with: "at: 9", { $0.output(at: 9) }, { $0.output(at: 9) }),
    just("output(in:)", with: "in: 0..<1", { $0.output(in: 0..<1) }, { $0.output(in: 0..<1) }),
    just("output(in:)", with: "in: 0...", { $0.output(in: 0...) }, { $0.output(in: 0...) }),
    just("output(in:)", with: "in: 1..<3", { $0.output(in: 1..<3) }, { $0.output(in: 1..<3) }),
    just("output(in:)", with: "in: 1...", { $0.output(in: 1...) }, { $0.output(in: 1...) }),
    just("output(in:)", with: "in: ...0", { $0.output(in: ...0) }, { $0.output(in: ...0) }),
    just(
      "output(in:)", with: "in: 0..<0",
      asCombine: [
        0: ["subscription", "4", "finished"], 1: ["subscription", "3", "finished"],
        2: ["subscription", "0", "finished"],
      ], { $0.output(in: 0..<0) }, { $0.output(in: 0..<0) }),
    just("setFailureType(to:)", { $0.setFailureType(to: Oops.self) }, { $0.setFailureType(to: Oops.self) }),
    just("mapError(_:)", { $0.mapError(oops) }, { $0.mapError(oops) }),
    just("replaceError(with:)", { $0.replaceError(with: 7) }, { $0.replaceError(with: 7) }),
    just("replaceEmpty(with:)", { $0.replaceEmpty(with: 7) }, { $0.replaceEmpty(with: 7) }),
    just("retry(_:)", { $0.retry(2) }, { $0.retry(2) }),
    just("prepend(_:)", { $0.prepend(7, 8) }, { $0.prepend(7, 8) }),
    just("prepend(_:)", overload: 2, { $0.prepend(Set([7])) }, { $0.prepend(Set([7])) }),
    just("append(_:)", { $0.append(7, 8) }, { $0.append(7, 8) }),
    just("append(_:)", overload: 2, { $0.append(Set([7])) }, { $0.append(Set([7])) }),
    just("contains(_:)", { $0.contains(4) }, { $0.contains(4) }),
    just("removeDuplicates()", { $0.removeDuplicates() }, { $0.removeDuplicates() }),
    just("min()", { $0.min() }, { $0.min() }),
    just("max()", { $0.max() }, { $0.max() }),
  ]
}
