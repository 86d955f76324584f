extension Publisher {
  /// Passes on what this publisher and another deliver, as it comes.
  ///
  /// Finishes when all have finished; fails, and cancels the others, when one fails. Downstream gets one value at a time, also when they come
  /// from several threads; values of one upstream stay in order. Unless demand is unlimited, requests one value at a time from each upstream,
  /// and another when that one has been delivered. Unlike in Combine, values that wait are delivered in the order in which they came.
  @inlinable
  public func merge<B: Publisher<Output, Failure>>(with other: B) -> Publishers.Merge<Self, B> {
    Publishers.Merge(self, other)
  }

  /// Passes on what this publisher and two others deliver, as it comes.
  @inlinable
  public func merge<B: Publisher<Output, Failure>, C: Publisher<Output, Failure>>(with b: B, _ c: C)
    -> Publishers.Merge3<Self, B, C>
  {
    Publishers.Merge3(self, b, c)
  }

  /// Passes on what this publisher and three others deliver, as it comes.
  @inlinable
  public func merge<
    B: Publisher<Output, Failure>, C: Publisher<Output, Failure>, D: Publisher<Output, Failure>
  >(with b: B, _ c: C, _ d: D) -> Publishers.Merge4<Self, B, C, D> {
    Publishers.Merge4(self, b, c, d)
  }

  /// Passes on what this publisher and four others deliver, as it comes.
  @inlinable
  public func merge<
    B: Publisher<Output, Failure>, C: Publisher<Output, Failure>, D: Publisher<Output, Failure>,
    E: Publisher<Output, Failure>
  >(with b: B, _ c: C, _ d: D, _ e: E) -> Publishers.Merge5<Self, B, C, D, E> {
    Publishers.Merge5(self, b, c, d, e)
  }

  /// Passes on what this publisher and five others deliver, as it comes.
  @inlinable
  public func merge<
    B: Publisher<Output, Failure>, C: Publisher<Output, Failure>, D: Publisher<Output, Failure>,
    E: Publisher<Output, Failure>, F: Publisher<Output, Failure>
  >(with b: B, _ c: C, _ d: D, _ e: E, _ f: F) -> Publishers.Merge6<Self, B, C, D, E, F> {
    Publishers.Merge6(self, b, c, d, e, f)
  }

  /// Passes on what this publisher and six others deliver, as it comes.
  @inlinable
  public func merge<
    B: Publisher<Output, Failure>, C: Publisher<Output, Failure>, D: Publisher<Output, Failure>,
    E: Publisher<Output, Failure>, F: Publisher<Output, Failure>, G: Publisher<Output, Failure>
  >(with b: B, _ c: C, _ d: D, _ e: E, _ f: F, _ g: G) -> Publishers.Merge7<Self, B, C, D, E, F, G> {
    Publishers.Merge7(self, b, c, d, e, f, g)
  }

  /// Passes on what this publisher and seven others deliver, as it comes.
  @inlinable
  public func merge<
    B: Publisher<Output, Failure>, C: Publisher<Output, Failure>, D: Publisher<Output, Failure>,
    E: Publisher<Output, Failure>, F: Publisher<Output, Failure>, G: Publisher<Output, Failure>,
    H: Publisher<Output, Failure>
  >(with b: B, _ c: C, _ d: D, _ e: E, _ f: F, _ g: G, _ h: H) -> Publishers.Merge8<Self, B, C, D, E, F, G, H>
  {
    Publishers.Merge8(self, b, c, d, e, f, g, h)
  }

  /// Passes on what this publisher and another of the same type deliver, as it comes.
  @inlinable
  public func merge(with other: Self) -> Publishers.MergeMany<Self> { Publishers.MergeMany([self, other]) }
}

// Merging a merge with more publishers gives one merge of all, not a merge of a merge.

extension Publishers.Merge {
  /// Merges with another publisher.
  @inlinable
  public func merge<C: Publisher<Output, Failure>>(with other: C) -> Publishers.Merge3<A, B, C> {
    Publishers.Merge3(a, b, other)
  }

  /// Merges with two more publishers.
  @inlinable
  public func merge<C: Publisher<Output, Failure>, D: Publisher<Output, Failure>>(with c: C, _ d: D)
    -> Publishers.Merge4<A, B, C, D>
  {
    Publishers.Merge4(a, b, c, d)
  }

  /// Merges with three more publishers.
  @inlinable
  public func merge<
    C: Publisher<Output, Failure>, D: Publisher<Output, Failure>, E: Publisher<Output, Failure>
  >(with c: C, _ d: D, _ e: E) -> Publishers.Merge5<A, B, C, D, E> {
    Publishers.Merge5(a, b, c, d, e)
  }

  /// Merges with four more publishers.
  @inlinable
  public func merge<
    C: Publisher<Output, Failure>, D: Publisher<Output, Failure>, E: Publisher<Output, Failure>,
    F: Publisher<Output, Failure>
  >(with c: C, _ d: D, _ e: E, _ f: F) -> Publishers.Merge6<A, B, C, D, E, F> {
    Publishers.Merge6(a, b, c, d, e, f)
  }

  /// Merges with five more publishers.
  @inlinable
  public func merge<
    C: Publisher<Output, Failure>, D: Publisher<Output, Failure>, E: Publisher<Output, Failure>,
    F: Publisher<Output, Failure>, G: Publisher<Output, Failure>
  >(with c: C, _ d: D, _ e: E, _ f: F, _ g: G) -> Publishers.Merge7<A, B, C, D, E, F, G> {
    Publishers.Merge7(a, b, c, d, e, f, g)
  }

  /// Merges with six more publishers.
  @inlinable
  public func merge<
    C: Publisher<Output, Failure>, D: Publisher<Output, Failure>, E: Publisher<Output, Failure>,
    F: Publisher<Output, Failure>, G: Publisher<Output, Failure>, H: Publisher<Output, Failure>
  >(with c: C, _ d: D, _ e: E, _ f: F, _ g: G, _ h: H) -> Publishers.Merge8<A, B, C, D, E, F, G, H> {
    Publishers.Merge8(a, b, c, d, e, f, g, h)
  }
}

extension Publishers.Merge3 {
  /// Merges with another publisher.
  @inlinable
  public func merge<D: Publisher<Output, Failure>>(with other: D) -> Publishers.Merge4<A, B, C, D> {
    Publishers.Merge4(a, b, c, other)
  }

  /// Merges with two more publishers.
  @inlinable
  public func merge<D: Publisher<Output, Failure>, E: Publisher<Output, Failure>>(with d: D, _ e: E)
    -> Publishers.Merge5<A, B, C, D, E>
  {
    Publishers.Merge5(a, b, c, d, e)
  }

  /// Merges with three more publishers.
  @inlinable
  public func merge<
    D: Publisher<Output, Failure>, E: Publisher<Output, Failure>, F: Publisher<Output, Failure>
  >(with d: D, _ e: E, _ f: F) -> Publishers.Merge6<A, B, C, D, E, F> {
    Publishers.Merge6(a, b, c, d, e, f)
  }

  /// Merges with four more publishers.
  @inlinable
  public func merge<
    D: Publisher<Output, Failure>, E: Publisher<Output, Failure>, F: Publisher<Output, Failure>,
    G: Publisher<Output, Failure>
  >(with d: D, _ e: E, _ f: F, _ g: G) -> Publishers.Merge7<A, B, C, D, E, F, G> {
    Publishers.Merge7(a, b, c, d, e, f, g)
  }

  /// Merges with five more publishers.
  @inlinable
  public func merge<
    D: Publisher<Output, Failure>, E: Publisher<Output, Failure>, F: Publisher<Output, Failure>,
    G: Publisher<Output, Failure>, H: Publisher<Output, Failure>
  >(with d: D, _ e: E, _ f: F, _ g: G, _ h: H) -> Publishers.Merge8<A, B, C, D, E, F, G, H> {
    Publishers.Merge8(a, b, c, d, e, f, g, h)
  }
}

extension Publishers.Merge4 {
  /// Merges with another publisher.
  @inlinable
  public func merge<E: Publisher<Output, Failure>>(with other: E) -> Publishers.Merge5<A, B, C, D, E> {
    Publishers.Merge5(a, b, c, d, other)
  }

  /// Merges with two more publishers.
  @inlinable
  public func merge<E: Publisher<Output, Failure>, F: Publisher<Output, Failure>>(with e: E, _ f: F)
    -> Publishers.Merge6<A, B, C, D, E, F>
  {
    Publishers.Merge6(a, b, c, d, e, f)
  }

  /// Merges with three more publishers.
  @inlinable
  public func merge<
    E: Publisher<Output, Failure>, F: Publisher<Output, Failure>, G: Publisher<Output, Failure>
  >(with e: E, _ f: F, _ g: G) -> Publishers.Merge7<A, B, C, D, E, F, G> {
    Publishers.Merge7(a, b, c, d, e, f, g)
  }

  /// Merges with four more publishers.
  @inlinable
  public func merge<
    E: Publisher<Output, Failure>, F: Publisher<Output, Failure>, G: Publisher<Output, Failure>,
    H: Publisher<Output, Failure>
  >(with e: E, _ f: F, _ g: G, _ h: H) -> Publishers.Merge8<A, B, C, D, E, F, G, H> {
    Publishers.Merge8(a, b, c, d, e, f, g, h)
  }
}

extension Publishers.Merge5 {
  /// Merges with another publisher.
  @inlinable
  public func merge<F: Publisher<Output, Failure>>(with other: F) -> Publishers.Merge6<A, B, C, D, E, F> {
    Publishers.Merge6(a, b, c, d, e, other)
  }

  /// Merges with two more publishers.
  @inlinable
  public func merge<F: Publisher<Output, Failure>, G: Publisher<Output, Failure>>(with f: F, _ g: G)
    -> Publishers.Merge7<A, B, C, D, E, F, G>
  {
    Publishers.Merge7(a, b, c, d, e, f, g)
  }

  /// Merges with three more publishers.
  @inlinable
  public func merge<
    F: Publisher<Output, Failure>, G: Publisher<Output, Failure>, H: Publisher<Output, Failure>
  >(with f: F, _ g: G, _ h: H) -> Publishers.Merge8<A, B, C, D, E, F, G, H> {
    Publishers.Merge8(a, b, c, d, e, f, g, h)
  }
}

extension Publishers.Merge6 {
  /// Merges with another publisher.
  @inlinable
  public func merge<G: Publisher<Output, Failure>>(with other: G) -> Publishers.Merge7<A, B, C, D, E, F, G> {
    Publishers.Merge7(a, b, c, d, e, f, other)
  }

  /// Merges with two more publishers.
  @inlinable
  public func merge<G: Publisher<Output, Failure>, H: Publisher<Output, Failure>>(with g: G, _ h: H)
    -> Publishers.Merge8<A, B, C, D, E, F, G, H>
  {
    Publishers.Merge8(a, b, c, d, e, f, g, h)
  }
}

extension Publishers.Merge7 {
  /// Merges with another publisher.
  @inlinable
  public func merge<H: Publisher<Output, Failure>>(with other: H) -> Publishers.Merge8<A, B, C, D, E, F, G, H>
  {
    Publishers.Merge8(a, b, c, d, e, f, g, other)
  }
}
