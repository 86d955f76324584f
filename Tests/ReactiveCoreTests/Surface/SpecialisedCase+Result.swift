import ReactiveCore
import ReactiveTestSupport

private typealias Outcome = Result<Int, Oops>

private func result<A: Publisher, B: Publisher>(
  _ name: String, overload: Int = 1, with detail: String = "",
  asCombine: [Int: [String]] = [:], _ special: @escaping @Sendable (Result<Int, Oops>.Publisher) -> A,
  _ general: @escaping @Sendable (General<Result<Int, Oops>.Publisher>) -> B
) -> SpecialisedCase {
  SpecialisedCase(
    "Result.Publisher." + name, overload: overload, with: detail, asCombine: asCombine,
    over: [
      Outcome.success(4).publisher, Outcome.success(3).publisher, Outcome.success(0).publisher,
      Outcome.failure(Oops(number: 1)).publisher,
    ], special, general)
}

private func success<A: Publisher, B: Publisher>(
  _ name: String, overload: Int = 1, with detail: String = "",
  asCombine: [Int: [String]] = [:], _ special: @escaping @Sendable (Result<Int, Never>.Publisher) -> A,
  _ general: @escaping @Sendable (General<Result<Int, Never>.Publisher>) -> B
) -> SpecialisedCase {
  SpecialisedCase(
    "Result.Publisher." + name, overload: overload, with: detail, asCombine: asCombine,
    over: [Result<Int, Never>.success(4).publisher], special, general)
}

extension SpecialisedCase {
  static let ofResult: [SpecialisedCase] = [
    result("map(_:)", { $0.map(up) }, { $0.map(up) }),
    result("tryMap(_:)", { $0.tryMap(risky) }, { $0.tryMap(risky) }),
    result("reduce(_:_:)", { $0.reduce(10, +) }, { $0.reduce(10, +) }),
    result("tryReduce(_:_:)", { $0.tryReduce(10, riskySum) }, { $0.tryReduce(10, riskySum) }),
    result("scan(_:_:)", { $0.scan(10, +) }, { $0.scan(10, +) }),
    result("tryScan(_:_:)", { $0.tryScan(10, riskySum) }, { $0.tryScan(10, riskySum) }),
    result("collect()", { $0.collect() }, { $0.collect() }),
    result("count()", { $0.count() }, { $0.count() }),
    result(
      "ignoreOutput()", asCombine: [3: SpecialisedCase.nothing], { $0.ignoreOutput() }, { $0.ignoreOutput() }),
    result("allSatisfy(_:)", { $0.allSatisfy(isEven) }, { $0.allSatisfy(isEven) }),
    result("tryAllSatisfy(_:)", { $0.tryAllSatisfy(riskyIsEven) }, { $0.tryAllSatisfy(riskyIsEven) }),
    result("contains(where:)", { $0.contains(where: isEven) }, { $0.contains(where: isEven) }),
    result(
      "tryContains(where:)", { $0.tryContains(where: riskyIsEven) }, { $0.tryContains(where: riskyIsEven) }),
    result("min(by:)", { $0.min(by: isLess) }, { $0.min(by: isLess) }),
    result("max(by:)", { $0.max(by: isLess) }, { $0.max(by: isLess) }),
    result(
      "tryMin(by:)", asCombine: [2: SpecialisedCase.thrown], { $0.tryMin(by: riskyIsLess) },
      { $0.tryMin(by: riskyIsLess) }),
    result(
      "tryMax(by:)", asCombine: [2: SpecialisedCase.thrown], { $0.tryMax(by: riskyIsLess) },
      { $0.tryMax(by: riskyIsLess) }),
    result("removeDuplicates(by:)", { $0.removeDuplicates(by: isSame) }, { $0.removeDuplicates(by: isSame) }),
    result(
      "tryRemoveDuplicates(by:)", asCombine: [2: SpecialisedCase.thrown],
      { $0.tryRemoveDuplicates(by: riskyIsSame) },
      { $0.tryRemoveDuplicates(by: riskyIsSame) }),
    result("first()", { $0.first() }, { $0.first() }),
    result("last()", { $0.last() }, { $0.last() }),
    result("mapError(_:)", { $0.mapError(oops) }, { $0.mapError(oops) }),
    result("replaceError(with:)", { $0.replaceError(with: 7) }, { $0.replaceError(with: 7) }),
    result("replaceEmpty(with:)", { $0.replaceEmpty(with: 7) }, { $0.replaceEmpty(with: 7) }),
    result("retry(_:)", { $0.retry(2) }, { $0.retry(2) }),
    success(
      "setFailureType(to:)", { $0.setFailureType(to: Oops.self) }, { $0.setFailureType(to: Oops.self) }),
    result("contains(_:)", { $0.contains(4) }, { $0.contains(4) }),
    result("removeDuplicates()", { $0.removeDuplicates() }, { $0.removeDuplicates() }),
    result("min()", { $0.min() }, { $0.min() }),
    result("max()", { $0.max() }, { $0.max() }),
  ]
}
