# SPDX-License-Identifier: Apache-2.0
"""Models of transformers, diffusers and onnxruntime-genai's builder, in small configurations."""
import pathlib
import tempfile

from rows import QUANTIZED, Row, torch_rows

BOTH = ("script", "dynamo")
WORDS = 96
TEXT = {"vocab_size": WORDS, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 64, "max_position_embeddings": 64}
GROUPED = {**TEXT, "num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
SEEN = {"image_size": 32, "patch_size": 8, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 64}
STEPS = {0: "batch", 1: "steps"}


def tensors_of(out):
    """The tensors of an output, in order."""
    import torch
    if isinstance(out, torch.Tensor):
        return [out]
    parts = out.values() if isinstance(out, dict) else out if isinstance(out, (list, tuple)) else []
    return [tensor for part in parts for tensor in tensors_of(part)]


def around(model, names, **fixed):
    """A module whose inputs are those of @model with @names."""
    import torch

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, *inputs):
            return tuple(tensors_of(self.inner(**dict(zip(names, inputs)), **fixed)))
    module = Module()
    # Exporters name the inputs after the parameters.
    scope = {}
    exec(f"def forward(self, {', '.join(names)}):\n    return self.run({', '.join(names)})", scope)
    Module.run, Module.forward = Module.forward, scope["forward"]
    return module


def ids(*dims):
    import torch
    return torch.randint(3, WORDS, dims, generator=torch.Generator().manual_seed(2))


def text_inputs(names=("input_ids", "attention_mask")):
    import torch
    mask = torch.ones(2, 9, dtype=torch.long)
    mask[1, 6:] = 0
    positions = torch.arange(9).expand(2, 9).contiguous()
    values = {"input_ids": ids(2, 9), "attention_mask": mask, "token_type_ids": ids(2, 9) % 2,
              "position_ids": positions, "decoder_input_ids": ids(2, 5)}
    return {name: values[name] for name in names}


def picture(size):
    import torch
    return {"pixel_values": torch.rand(1, 3, size, size, generator=torch.Generator().manual_seed(1))}


def transformer(kind, config, inputs, call=None, **options):
    """@kind: the classes' name before Config; its model has the name @call. The scripted one has plain attention."""
    def make(way):
        import transformers
        settings = getattr(transformers, f"{kind}Config")(**config)
        if way.startswith("script"):
            settings._attn_implementation = "eager"
        model = getattr(transformers, call or f"{kind}Model")(settings)
        given = inputs()
        return around(model, list(given), **options), given
    return make


def text(kind, config, call=None, names=("input_ids", "attention_mask"), **options):
    return transformer(kind, config, lambda: text_inputs(names), call, **options)


def seen(kind, config, call=None, size=32, **options):
    return transformer(kind, config, lambda: picture(size), call, **options)


def sound(length, name="input_values"):
    def give():
        import torch
        return {name: torch.randn(*length, generator=torch.Generator().manual_seed(1))}
    return give


def clip(_):
    import transformers
    config = transformers.CLIPConfig(text_config={**TEXT, "eos_token_id": 2}, vision_config=SEEN, projection_dim=16)
    given = {**text_inputs(), **picture(32)}
    return around(transformers.CLIPModel(config), list(given), return_dict=True), given


def whisper(_):
    import torch
    import transformers
    config = transformers.WhisperConfig(
        vocab_size=WORDS, num_mel_bins=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, d_model=32, encoder_ffn_dim=64, decoder_ffn_dim=64, max_source_positions=20,
        max_target_positions=20, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
    given = {"input_features": torch.randn(1, 16, 40), "decoder_input_ids": ids(1, 4)}
    return around(transformers.WhisperModel(config), list(given), use_cache=False), given


def past_of(kind, config, call="ForCausalLM"):
    """One step of a decoder whose cache of keys and values is an input."""
    def make(way):
        import torch
        import transformers

        class Step(torch.nn.Module):
            def __init__(self):
                super().__init__()
                settings = getattr(transformers, f"{kind}Config")(**config)
                if way.startswith("script"):
                    settings._attn_implementation = "eager"
                self.model = getattr(transformers, kind + call)(settings)

            def forward(self, input_ids, attention_mask, key_0, value_0, key_1, value_1):
                cache = transformers.DynamicCache([(key_0, value_0), (key_1, value_1)])
                out = self.model(input_ids=input_ids, attention_mask=attention_mask, past_key_values=cache)
                layers = out.past_key_values.layers
                return out.logits, layers[0].keys, layers[0].values, layers[1].keys, layers[1].values
        heads = config.get("num_key_value_heads", 4)
        past = {f"{what}_{i}": torch.randn(2, heads, 6, 8) for i in range(2) for what in ("key", "value")}
        return Step(), {"input_ids": ids(2, 1), "attention_mask": torch.ones(2, 7, dtype=torch.long), **past}
    return make


GPT2 = {"vocab_size": WORDS, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "bos_token_id": 1,
        "eos_token_id": 2}
T5 = {"vocab_size": WORDS, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
BART = {"vocab_size": WORDS, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "max_position_embeddings": 64,
        "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
WAVE = {"vocab_size": WORDS, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 64, "conv_dim": (16, 16), "conv_stride": (5, 2), "conv_kernel": (10, 3),
        "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4}
SEGFORMER = {"hidden_sizes": [16, 32], "depths": [1, 1], "num_encoder_blocks": 2, "sr_ratios": [2, 1],
             "patch_sizes": [7, 3], "strides": [4, 2], "num_attention_heads": [2, 4], "mlp_ratios": [2, 2],
             "decoder_hidden_size": 32}
SWIN = {"image_size": 32, "patch_size": 4, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4}
MIXTRAL = {**GROUPED, "num_local_experts": 4, "num_experts_per_tok": 2}
MAMBA = {"vocab_size": WORDS, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8}


# --- diffusers ---

def diffuser(kind, config, inputs, **options):
    def make(_):
        import diffusers
        given = inputs()
        return around(getattr(diffusers, kind)(**config), list(given), **options), given
    return make


def noisy(channels, size, *more):
    def give():
        import torch
        found = {"sample": torch.randn(1, channels, size, size), "timestep": torch.tensor([7])}
        if more:
            found["encoder_hidden_states"] = torch.randn(1, *more)
        return found
    return give


def dit_inputs():
    import torch
    return {"hidden_states": torch.randn(1, 4, 8, 8), "timestep": torch.tensor([7]), "class_labels": torch.tensor([3])}


def sd3_inputs():
    import torch
    return {"hidden_states": torch.randn(1, 4, 8, 8), "encoder_hidden_states": torch.randn(1, 5, 32),
            "pooled_projections": torch.randn(1, 32), "timestep": torch.tensor([7])}


def flux_inputs():
    import torch
    return {"hidden_states": torch.randn(1, 16, 4), "encoder_hidden_states": torch.randn(1, 5, 32),
            "pooled_projections": torch.randn(1, 32), "timestep": torch.tensor([0.5]), "img_ids": torch.randn(16, 3),
            "txt_ids": torch.zeros(5, 3)}


UNET = {"sample_size": 8, "in_channels": 4, "out_channels": 4, "layers_per_block": 1, "block_out_channels": (16, 32),
        "norm_num_groups": 8, "cross_attention_dim": 32, "attention_head_dim": 4,
        "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
        "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D")}
UNET_PLAIN = {"sample_size": 16, "layers_per_block": 1, "block_out_channels": (16, 32), "norm_num_groups": 8,
              "attention_head_dim": 8, "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
              "up_block_types": ("AttnUpBlock2D", "UpBlock2D")}
AUTOENCODER = {"block_out_channels": (16, 32), "norm_num_groups": 8, "latent_channels": 4,
               "down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2}
DIT = {"num_attention_heads": 4, "attention_head_dim": 8, "in_channels": 4, "num_layers": 2, "sample_size": 8,
       "norm_num_groups": 4, "num_embeds_ada_norm": 10, "out_channels": 8}
SD3 = {"sample_size": 8, "patch_size": 2, "in_channels": 4, "num_layers": 2, "attention_head_dim": 8,
       "num_attention_heads": 4, "joint_attention_dim": 32, "caption_projection_dim": 32, "pooled_projection_dim": 32,
       "out_channels": 4, "pos_embed_max_size": 8}
FLUX = {"in_channels": 4, "num_layers": 1, "num_single_layers": 1, "attention_head_dim": 16, "num_attention_heads": 2,
        "joint_attention_dim": 32, "pooled_projection_dim": 32, "axes_dims_rope": (4, 4, 8), "guidance_embeds": False}


def autoencoder(part, config=None):
    def make(_):
        import diffusers
        import torch
        model = diffusers.AutoencoderKL(**(config or AUTOENCODER))

        class Part(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = model

            def forward(self, x):
                return self.model.decode(x).sample if part == "decoder" else self.model.encode(x).latent_dist.mean
        return Part(), {"x": torch.randn(1, 4, 8, 8) if part == "decoder" else torch.randn(1, 3, 16, 16)}
    return make


# --- onnxruntime-genai ---

def write_checkpoint(folder, kind, config):
    """A folder as transformers saves one: random weights, the configuration, and a tokenizer of numbered words."""
    import tokenizers
    import torch
    import transformers
    torch.manual_seed(0)
    model = getattr(transformers, f"{kind}ForCausalLM")(getattr(transformers, f"{kind}Config")(**config))
    model.save_pretrained(folder)
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({f"w{i}": i for i in range(WORDS)}, unk_token="w0"))
    transformers.PreTrainedTokenizerFast(tokenizer_object=words, bos_token="w1", eos_token="w2", pad_token="w0",
                                         unk_token="w0").save_pretrained(folder)


def genai(kind, config, precision):
    def export(path):
        import numpy as np
        import onnx
        from onnxruntime_genai.models.builder import create_model, parse_extra_options
        with tempfile.TemporaryDirectory() as folder:
            write_checkpoint(f"{folder}/in", kind, config)
            places = (None, f"{folder}/in", f"{folder}/out", precision, "cpu", f"{folder}/cache")
            create_model(*places, **parse_extra_options(*places, []))
            encoded = onnx.load(next(pathlib.Path(f"{folder}/out").glob("*.onnx")))
        onnx.save(encoded, path)
        random = np.random.RandomState(1)
        given = {}
        for value in encoded.graph.input:
            dims = [d.dim_value for d in value.type.tensor_type.shape.dim]
            if value.name.startswith("past_key_values"):
                given[value.name] = np.zeros((1, dims[1], 0, dims[3] or GENAI["head_dim"]), np.float32)
            elif value.name == "attention_mask":
                given[value.name] = np.ones((1, 6), np.int64)
            elif value.name == "position_ids":
                given[value.name] = np.arange(6, dtype=np.int64)[None]
            else:
                given[value.name] = random.randint(3, WORDS, (1, 6)).astype(np.int64)
        return given
    return export


GENAI = {**GROUPED, "head_dim": 16}
PAIR = ("input_ids", "attention_mask", "decoder_input_ids")
MASKED = {"input_ids": STEPS, "attention_mask": STEPS}
TYPED = ("input_ids", "attention_mask", "token_type_ids")
PLACED = ("input_ids", "attention_mask", "position_ids")
ROWS = [
    *torch_rows("transformers", "bert", text("Bert", TEXT, names=TYPED), {name: STEPS for name in TYPED}),
    *torch_rows("transformers", "distilbert", text("DistilBert", {
        "vocab_size": WORDS, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "max_position_embeddings": 64},
        "DistilBertForSequenceClassification"), MASKED, ways=BOTH),
    *torch_rows("transformers", "roberta", text("Roberta", TEXT, "RobertaForTokenClassification"), ways=BOTH),
    *torch_rows("transformers", "albert", text("Albert", {**TEXT, "embedding_size": 16}), ways=BOTH),
    *torch_rows("transformers", "electra", text("Electra", {**TEXT, "embedding_size": 16}), ways=("dynamo",)),
    *torch_rows("transformers", "deberta", text("DebertaV2", {
        **TEXT, "relative_attention": True, "position_buckets": 8, "pos_att_type": ["p2c", "c2p"], "norm_rel_ebd":
        "layer_norm"}), ways=BOTH),
    *torch_rows("transformers", "mobilebert", text("MobileBert", {**TEXT, "embedding_size": 32,
        "intra_bottleneck_size": 32, "true_hidden_size": 32}), ways=("dynamo",)),
    *torch_rows("transformers", "gpt2", text("GPT2", GPT2, "GPT2LMHeadModel", use_cache=False), MASKED),
    *torch_rows("transformers", "gpt2_past", past_of("GPT2", GPT2, "LMHeadModel"), ways=BOTH),
    *torch_rows("transformers", "gpt_neox", text("GPTNeoX", TEXT, use_cache=False), ways=("dynamo",)),
    *torch_rows("transformers", "opt", text("OPT", {
        "vocab_size": WORDS, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 64,
        "max_position_embeddings": 64, "word_embed_proj_dim": 32}, use_cache=False), ways=BOTH),
    *torch_rows("transformers", "llama", text("Llama", GROUPED, "LlamaForCausalLM", PLACED, use_cache=False),
                {name: STEPS for name in PLACED}),
    *torch_rows("transformers", "llama_past", past_of("Llama", GROUPED), ways=BOTH),
    *torch_rows("transformers", "qwen2", text("Qwen2", GROUPED, names=PLACED, use_cache=False), ways=("dynamo-newest",)),
    *torch_rows("transformers", "qwen3", text("Qwen3", {**GROUPED, "head_dim": 8}, use_cache=False), ways=BOTH),
    *torch_rows("transformers", "gemma2", text("Gemma2", {**GROUPED, "head_dim": 8, "sliding_window": 4},
                                               use_cache=False), ways=BOTH),
    *torch_rows("transformers", "phi3", text("Phi3", GROUPED, use_cache=False), ways=("dynamo",)),
    *torch_rows("transformers", "mixtral", text("Mixtral", MIXTRAL, use_cache=False), ways=("dynamo",)),
    *torch_rows("transformers", "mamba", text("Mamba", MAMBA, names=("input_ids",), use_cache=False), ways=BOTH),
    *torch_rows("transformers", "t5", text("T5", T5, names=PAIR, use_cache=False), ways=BOTH),
    *torch_rows("transformers", "bart", text("Bart", BART, names=PAIR, use_cache=False), ways=BOTH),
    *torch_rows("transformers", "vit", seen("ViT", SEEN, "ViTForImageClassification")),
    *torch_rows("transformers", "dinov2", seen("Dinov2", SEEN), ways=BOTH),
    *torch_rows("transformers", "swin", seen("Swin", SWIN), ways=BOTH),
    *torch_rows("transformers", "segformer", seen("Segformer", SEGFORMER, "SegformerForSemanticSegmentation", 64),
                ways=BOTH),
    *torch_rows("transformers", "mobilevit", seen("MobileViT", {"image_size": 64}, size=64), ways=("dynamo",)),
    *torch_rows("transformers", "clip", clip, ways=BOTH),
    *torch_rows("transformers", "whisper", whisper, ways=BOTH),
    *torch_rows("transformers", "wav2vec2", transformer("Wav2Vec2", WAVE, sound((1, 800)), "Wav2Vec2ForCTC"), ways=BOTH),
    *torch_rows("transformers", "hubert", transformer("Hubert", WAVE, sound((1, 800))), ways=("dynamo",)),

    *torch_rows("diffusers", "unet_condition", diffuser("UNet2DConditionModel", UNET, noisy(4, 8, 5, 32))),
    *torch_rows("diffusers", "unet", diffuser("UNet2DModel", UNET_PLAIN, noisy(3, 16)), ways=BOTH),
    *torch_rows("diffusers", "decoder", autoencoder("decoder"), ways=BOTH),
    *torch_rows("diffusers", "encoder", autoencoder("encoder"), ways=BOTH),
    *torch_rows("diffusers", "dit", diffuser("DiTTransformer2DModel", DIT, dit_inputs), ways=BOTH),
    *torch_rows("diffusers", "sd3", diffuser("SD3Transformer2DModel", SD3, sd3_inputs), ways=BOTH),
    *torch_rows("diffusers", "flux", diffuser("FluxTransformer2DModel", FLUX, flux_inputs), ways=BOTH),

    Row("genai", "llama", "fp32", genai("Llama", GENAI, "fp32")),
    Row("genai", "llama", "int4", genai("Llama", GENAI, "int4"), QUANTIZED),
    Row("genai", "qwen2", "fp32", genai("Qwen2", GENAI, "fp32")),
    Row("genai", "qwen3", "int4", genai("Qwen3", GENAI, "int4"), QUANTIZED),
    Row("genai", "gemma2", "fp32", genai("Gemma2", GENAI, "fp32")),
    Row("genai", "mistral", "int8", genai("Mistral", GENAI, "int8"), QUANTIZED),
]
