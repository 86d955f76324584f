import PortableCombine
import Testing

// Combine's names of generic parameters. A program that extends a type uses them; if a name differs, this file doesn't compile.

extension AnyPublisher { fileprivate typealias Parameters = (Output, Failure) }
extension AnySubscriber { fileprivate typealias Parameters = (Input, Failure) }
extension AsyncPublisher { fileprivate typealias Parameters = P }
extension AsyncThrowingPublisher { fileprivate typealias Parameters = P }
extension CurrentValueSubject { fileprivate typealias Parameters = (Output, Failure) }
extension Deferred { fileprivate typealias Parameters = DeferredPublisher }
extension Empty { fileprivate typealias Parameters = (Output, Failure) }
extension Fail { fileprivate typealias Parameters = (Output, Failure) }
extension Future { fileprivate typealias Parameters = (Output, Failure) }
extension Just { fileprivate typealias Parameters = Output }
extension PassthroughSubject { fileprivate typealias Parameters = (Output, Failure) }
extension Published { fileprivate typealias Parameters = Value }
extension Record { fileprivate typealias Parameters = (Output, Failure) }
extension Subscribers.Assign { fileprivate typealias Parameters = (Root, Input) }
extension Subscribers.Completion { fileprivate typealias Parameters = Failure }
extension Subscribers.Sink { fileprivate typealias Parameters = (Input, Failure) }
extension Publishers.AllSatisfy { fileprivate typealias Parameters = Upstream }
extension Publishers.TryAllSatisfy { fileprivate typealias Parameters = Upstream }
extension Publishers.AssertNoFailure { fileprivate typealias Parameters = Upstream }
extension Publishers.Autoconnect { fileprivate typealias Parameters = Upstream }
extension Publishers.Breakpoint { fileprivate typealias Parameters = Upstream }
extension Publishers.Buffer { fileprivate typealias Parameters = Upstream }
extension Publishers.Catch { fileprivate typealias Parameters = (Upstream, NewPublisher) }
extension Publishers.TryCatch { fileprivate typealias Parameters = (Upstream, NewPublisher) }
extension Publishers.Collect { fileprivate typealias Parameters = Upstream }
extension Publishers.CollectByCount { fileprivate typealias Parameters = Upstream }
extension Publishers.CollectByTime { fileprivate typealias Parameters = (Upstream, Context) }
extension Publishers.CombineLatest { fileprivate typealias Parameters = (A, B) }
extension Publishers.CombineLatest3 { fileprivate typealias Parameters = (A, B, C) }
extension Publishers.CombineLatest4 { fileprivate typealias Parameters = (A, B, C, D) }
extension Publishers.CompactMap { fileprivate typealias Parameters = (Upstream, Output) }
extension Publishers.TryCompactMap { fileprivate typealias Parameters = (Upstream, Output) }
extension Publishers.Comparison { fileprivate typealias Parameters = Upstream }
extension Publishers.TryComparison { fileprivate typealias Parameters = Upstream }
extension Publishers.Concatenate { fileprivate typealias Parameters = (Prefix, Suffix) }
extension Publishers.Contains { fileprivate typealias Parameters = Upstream }
extension Publishers.ContainsWhere { fileprivate typealias Parameters = Upstream }
extension Publishers.TryContainsWhere { fileprivate typealias Parameters = Upstream }
extension Publishers.Count { fileprivate typealias Parameters = Upstream }
extension Publishers.Debounce { fileprivate typealias Parameters = (Upstream, Context) }
extension Publishers.Decode { fileprivate typealias Parameters = (Upstream, Output, Coder) }
extension Publishers.Delay { fileprivate typealias Parameters = (Upstream, Context) }
extension Publishers.Drop { fileprivate typealias Parameters = Upstream }
extension Publishers.DropUntilOutput { fileprivate typealias Parameters = (Upstream, Other) }
extension Publishers.DropWhile { fileprivate typealias Parameters = Upstream }
extension Publishers.TryDropWhile { fileprivate typealias Parameters = Upstream }
extension Publishers.Encode { fileprivate typealias Parameters = (Upstream, Coder) }
extension Publishers.Filter { fileprivate typealias Parameters = Upstream }
extension Publishers.TryFilter { fileprivate typealias Parameters = Upstream }
extension Publishers.First { fileprivate typealias Parameters = Upstream }
extension Publishers.FirstWhere { fileprivate typealias Parameters = Upstream }
extension Publishers.TryFirstWhere { fileprivate typealias Parameters = Upstream }
extension Publishers.FlatMap { fileprivate typealias Parameters = (NewPublisher, Upstream) }
extension Publishers.HandleEvents { fileprivate typealias Parameters = Upstream }
extension Publishers.IgnoreOutput { fileprivate typealias Parameters = Upstream }
extension Publishers.Last { fileprivate typealias Parameters = Upstream }
extension Publishers.LastWhere { fileprivate typealias Parameters = Upstream }
extension Publishers.TryLastWhere { fileprivate typealias Parameters = Upstream }
extension Publishers.MakeConnectable { fileprivate typealias Parameters = Upstream }
extension Publishers.Map { fileprivate typealias Parameters = (Upstream, Output) }
extension Publishers.TryMap { fileprivate typealias Parameters = (Upstream, Output) }
extension Publishers.MapError { fileprivate typealias Parameters = (Upstream, Failure) }
extension Publishers.MapKeyPath { fileprivate typealias Parameters = (Upstream, Output) }
extension Publishers.MapKeyPath2 { fileprivate typealias Parameters = (Upstream, Output0, Output1) }
extension Publishers.MapKeyPath3 { fileprivate typealias Parameters = (Upstream, Output0, Output1, Output2) }
extension Publishers.MeasureInterval { fileprivate typealias Parameters = (Upstream, Context) }
extension Publishers.Merge { fileprivate typealias Parameters = (A, B) }
extension Publishers.Merge3 { fileprivate typealias Parameters = (A, B, C) }
extension Publishers.Merge4 { fileprivate typealias Parameters = (A, B, C, D) }
extension Publishers.Merge5 { fileprivate typealias Parameters = (A, B, C, D, E) }
extension Publishers.Merge6 { fileprivate typealias Parameters = (A, B, C, D, E, F) }
extension Publishers.Merge7 { fileprivate typealias Parameters = (A, B, C, D, E, F, G) }
extension Publishers.Merge8 { fileprivate typealias Parameters = (A, B, C, D, E, F, G, H) }
extension Publishers.MergeMany { fileprivate typealias Parameters = Upstream }
extension Publishers.Multicast { fileprivate typealias Parameters = (Upstream, SubjectType) }
extension Publishers.Output { fileprivate typealias Parameters = Upstream }
extension Publishers.PrefixUntilOutput { fileprivate typealias Parameters = (Upstream, Other) }
extension Publishers.PrefixWhile { fileprivate typealias Parameters = Upstream }
extension Publishers.TryPrefixWhile { fileprivate typealias Parameters = Upstream }
extension Publishers.Print { fileprivate typealias Parameters = Upstream }
extension Publishers.ReceiveOn { fileprivate typealias Parameters = (Upstream, Context) }
extension Publishers.Reduce { fileprivate typealias Parameters = (Upstream, Output) }
extension Publishers.TryReduce { fileprivate typealias Parameters = (Upstream, Output) }
extension Publishers.RemoveDuplicates { fileprivate typealias Parameters = Upstream }
extension Publishers.TryRemoveDuplicates { fileprivate typealias Parameters = Upstream }
extension Publishers.ReplaceEmpty { fileprivate typealias Parameters = Upstream }
extension Publishers.ReplaceError { fileprivate typealias Parameters = Upstream }
extension Publishers.Retry { fileprivate typealias Parameters = Upstream }
extension Publishers.Scan { fileprivate typealias Parameters = (Upstream, Output) }
extension Publishers.TryScan { fileprivate typealias Parameters = (Upstream, Output) }
extension Publishers.Sequence { fileprivate typealias Parameters = (Elements, Failure) }
extension Publishers.SetFailureType { fileprivate typealias Parameters = (Upstream, Failure) }
extension Publishers.Share { fileprivate typealias Parameters = Upstream }
extension Publishers.SubscribeOn { fileprivate typealias Parameters = (Upstream, Context) }
extension Publishers.SwitchToLatest { fileprivate typealias Parameters = (P, Upstream) }
extension Publishers.Throttle { fileprivate typealias Parameters = (Upstream, Context) }
extension Publishers.Timeout { fileprivate typealias Parameters = (Upstream, Context) }
extension Publishers.Zip { fileprivate typealias Parameters = (A, B) }
extension Publishers.Zip3 { fileprivate typealias Parameters = (A, B, C) }
extension Publishers.Zip4 { fileprivate typealias Parameters = (A, B, C, D) }
extension Publishers.TimeGroupingStrategy { fileprivate typealias Parameters = Context }
extension Publishers.BufferingStrategy { fileprivate typealias Parameters = Failure }

@Suite struct GenericParameterTests {
  @Test func theOrderIsCombines() {
    typealias Numbers = Just<Int>
    typealias Lists = Just<[Int]>
    #expect(
      Publishers.SwitchToLatest<Numbers, Just<Numbers>>.Parameters.self == (Numbers, Just<Numbers>).self)
    #expect(Publishers.FlatMap<Lists, Numbers>.Parameters.self == (Lists, Numbers).self)
    #expect(
      Publishers.Concatenate<Numbers, Empty<Int, Never>>.Parameters.self == (Numbers, Empty<Int, Never>).self)
    #expect(
      Publishers.Catch<Fail<Int, any Error>, Numbers>.Parameters.self == (Fail<Int, any Error>, Numbers).self)
  }
}
