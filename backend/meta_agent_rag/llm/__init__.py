"""The only way to call a model: tiers, providers, prices, cache, budget and ledger behind `ainvoke`."""
