"""Tumour area selection: metastases in gigapixel slides of lymph nodes."""
